"use strict";
// The page works without this: here its figures follow the stream, and its chart can be looked into.
(() => {
  const main = document.querySelector("main[data-model]");
  if (!main) return;
  const path = `/v1/models/${main.dataset.model}`;
  const group = main.dataset.group;
  const whole = new Intl.NumberFormat();
  const place = document.querySelector("[data-chart]");
  let chart = null, seen = null;

  const figures = (known) => {
    for (const item of document.querySelectorAll("[data-figure]")) {
      const value = known[item.dataset.figure];
      if (typeof value === "number") item.textContent = whole.format(value);
    }
    const now = performance.now();
    if (seen && known.events > seen.events) {
      const rate = (1000 * (known.events - seen.events)) / (now - seen.at);
      const item = document.querySelector("[data-rate]");
      if (item) item.textContent = whole.format(Math.round(rate * 10) / 10);
    }
    if (!seen || known.events > seen.events) seen = { events: known.events, at: now };
  };

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const columns = (points) => {
    const of = points.filter((point) => Object.hasOwn(point.groups, group));
    const take = (place) => of.map((point) => point.groups[group][place]);
    return [of.map((point) => point.settled), take(1), take(2), take(3)];
  };

  // The single model's regret may be many times the others': it widens the picture at most threefold.
  const reach = (chart) => {
    const known = (from) => from.filter((value) => value != null);
    const own = [0, ...known(chart.data[1]), ...known(chart.data[2])];
    const low = Math.min(...own), high = Math.max(...own), span = high - low || 1;
    const single = known(chart.data[3]);
    return [
      Math.max(low - span, Math.min(low, ...single)) - span / 20,
      Math.min(high + span, Math.max(high, ...single)) + span / 20,
    ];
  };

  const draw = (points) => {
    const data = columns(points);
    if (data[0].length < 2) return;
    if (chart) return chart.setData(data);
    place.textContent = "";
    const grid = { stroke: colour("--line"), width: 1 };
    const axis = { stroke: colour("--quiet"), grid, ticks: grid };
    chart = new uPlot({
      width: place.clientWidth, height: 320, scales: { x: { time: false }, y: { range: reach } },
      axes: [{ ...axis, label: "settled rounds of the model" }, { ...axis, size: 70 }],
      bands: [{ series: [2, 1], fill: colour("--certificate") + "22" }],
      series: [
        {},
        { label: "regret", stroke: colour("--regret"), width: 2 },
        { label: "certificate", stroke: colour("--certificate"), width: 2, dash: [6, 4] },
        { label: "single model", stroke: colour("--single"), width: 2, dash: [2, 3] },
      ],
    }, data, place);
    new ResizeObserver(() => chart.setSize({ width: place.clientWidth, height: 320 })).observe(place);
  };

  const look = async () => {
    const response = await fetch(`${path}/history?group=${encodeURIComponent(group)}`);
    if (response.ok) draw((await response.json()).points);
  };

  // What the server writes of the groups, of alerts and of ages is taken from the page as it is now.
  const renew = async () => {
    const response = await fetch(`${location.pathname}?group=${encodeURIComponent(group)}`);
    if (response.redirected) location.reload(); // to log in again
    if (!response.ok || response.redirected) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const item of document.querySelectorAll("[data-live]")) {
      const now = page.querySelector(`[data-live="${item.dataset.live}"]`);
      if (now && !item.contains(document.activeElement)) item.replaceChildren(...now.childNodes);
    }
  };

  // One after another: where answers take long, requests do not pile up.
  const follow = async () => {
    try {
      if (!document.hidden) {
        if (place) await look();
        await renew();
      }
    } catch { /* it is not there just now */ }
    setTimeout(follow, 5000);
  };

  if (place) draw(JSON.parse(place.dataset.chart));
  setTimeout(follow, 5000);
  const stream = new EventSource(`${path}/stream`);
  stream.addEventListener("figures", (event) => figures(JSON.parse(event.data)));
})();
