"""The page at ``/``: models, alerts, worst groups, and one group's regret with its certificate.

It is whole without scripts; with them, figures and chart follow what happens. All text from rows is
escaped, and nothing is fetched from elsewhere.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

import jinja2
import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from groupwise.files.certificates import STATUS
from groupwise.serve import access
from groupwise.serve.bodies import body
from groupwise.serve.engine import Engine
from groupwise.serve.errors import ForbiddenError, ServiceError, UnauthorisedError, UnknownError
from groupwise.serve.looks import LINE_GROUPS, Looks
from groupwise.serve.problems import HEADERS, answered
from groupwise.serve.service import Service
from groupwise.serve.store import Token

COOKIE = "groupwise"
FORM = "application/x-www-form-urlencoded"
LOGIN = 4_096
"""Bytes of that form, which anybody may send."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
SECURE = {**HEADERS, "Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer"}
KINDS = {".css": "text/css", ".js": "text/javascript", ".LICENSE": "text/plain"}
WORST = 30
"""Groups in the table."""
LATE = 7 * 86_400.0
"""Seconds after which a label is called late."""
LEAD = 0.01
"""The single model is ahead where it lost less by this share of what groupwise did. In the first
rounds of a group it often is by a little, as combining has its price."""
STALE = 5
"""A snapshot is stale after so many times the time between two."""
LONGEST = 120
"""Characters of a group's name that are shown: rows may hold any text."""
WIDTH, HEIGHT, LEFT, BELOW = 720, 300, 70, 30

Given = Callable[[Request, str | None], Token]


class Pages:
    """What people see."""

    def __init__(self, service: Service, looks: Looks, given: Given) -> None:
        self._service = service
        self._looks = looks
        self._given = given
        self._environment = jinja2.Environment(
            loader=jinja2.PackageLoader("groupwise.serve", "templates"), autoescape=True
        )
        self._environment.filters.update(whole=whole, figure=figure, short=short)

    def routes(self) -> list[Route]:
        """The addresses of the pages."""
        return [
            Route("/", self._guarded(self._models), methods=["GET"]),
            Route("/models/{model}", self._guarded(self._model), methods=["GET"]),
            Route("/static/{name}", self._static, methods=["GET"]),
            Route("/login", self._form, methods=["GET"]),
            Route("/login", self._login, methods=["POST"]),
        ]

    def _guarded(
        self, page: Callable[[Request, Token], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def guarded(request: Request) -> Response:
            try:
                return await page(request, self._given(request, access.READ))
            except (UnauthorisedError, ForbiddenError):
                if self._service.guarded:
                    return RedirectResponse("/login", 303, SECURE)
                return answered(ForbiddenError("This service answers as localhost only."))
            except ServiceError as error:
                return answered(error)

        return guarded

    def _html(self, name: str, status: int = 200, **known: Any) -> Response:
        text = self._environment.get_template(name).render(**known)
        return Response(text, status, SECURE, "text/html; charset=utf-8")

    async def _models(self, request: Request, token: Token) -> Response:
        self._service.check_ready()
        engines = [
            one
            for name, one in sorted(self._service.engines.items())
            if not token.models or name in token.models
        ]
        models = [{**self._looks.about(one), "alerts": self._alerts(one)} for one in engines]
        address = str(request.base_url)
        return self._html("models.html", title="groupwise", models=models, address=address)

    async def _model(self, request: Request, token: Token) -> Response:
        engine = self._service.engine(request.path_params["model"])
        table = (await self._looks.regret(engine, LINE_GROUPS)).values
        rows = sorted(table["rows"], key=_badness, reverse=True)[:WORST]
        group = request.query_params.get("group") or (rows[0]["group"] if rows else "always_on")
        points = await self._looks.history(engine, group)
        about = self._looks.about(engine)
        now = time.time()
        return self._html(
            "model.html",
            title=f"{about['name']} · groupwise",
            about=about,
            alerts=self._alerts(engine),
            group=group,
            svg=svg([(one.settled, *one.figures(group)) for one in points]),
            points=msgspec.json.encode(points).decode(),
            table=table,
            unit=f", {unit}" if (unit := table["units"].get("regret")) else "",
            rows=rows,
            words=[(one, STATUS[one]) for one in STATUS if one in {row["status"] for row in rows}],
            lag=duration(None if about["oldest"] is None else now - about["oldest"]),
            snapshot=duration(None if not about["snapshot_at"] else now - about["snapshot_at"]),
        )

    def _alerts(self, engine: Engine) -> list[str]:
        """What somebody should look at."""
        found = []
        about, now = self._looks.about(engine), time.time()
        if engine.unavailable is not None:
            found.append(str(engine.unavailable))
        if self._service.committer.broken is not None:
            found.append(str(self._service.committer.broken))
        if about["oldest"] is not None and now - about["oldest"] > LATE:
            found.append(f"Labels are late: one is awaited for {duration(now - about['oldest'])}.")
        most = STALE * self._service.ageing.seconds
        if engine.unsnapped and about["snapshot_at"] and now - about["snapshot_at"] > most:
            age = duration(now - about["snapshot_at"])
            found.append(f"The last snapshot is {age} old: a restart replays all that came since.")
        found += leads((self._looks.last(engine) or {"rows": []})["rows"])
        for of, row in self._looks.miscalibrated(engine):
            what = "" if of is None else f" of {of}"
            found.append(
                f"Probabilities{what} are off on {short(row['group'])}: by {figure(row['gap'])} "
                "on average."
            )
        return found[:10]

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        known = {one.name: one for one in files("groupwise.serve").joinpath("static").iterdir()}
        kind = KINDS.get("." + name.rpartition(".")[2])
        if name not in known or kind is None:
            return answered(UnknownError(f"There is no file {name!r}."))
        headers = {**SECURE, "Cache-Control": "max-age=3600"}
        return Response(known[name].read_bytes(), 200, headers, kind)

    async def _form(self, request: Request) -> Response:
        return self._html("login.html", title="groupwise", wrong=False)

    async def _login(self, request: Request) -> Response:
        try:
            content = await body(request, FORM, LOGIN)
            (text,) = parse_qs(content.decode(errors="replace")).get("token", [""])
            token = access.found(self._service.tokens, text)
            if not {access.READ, access.ADMIN} & {*token.scopes}:
                raise ForbiddenError("It is not for looking.")
        except (UnauthorisedError, ForbiddenError, ValueError):
            return self._html("login.html", 401, title="groupwise", wrong=True)
        except ServiceError as error:
            return answered(error)
        response = RedirectResponse("/", 303, SECURE)
        # A proxy says what it was asked by; whoever makes it up gets a cookie that is kept better.
        secure = "https" in (request.scope["scheme"], request.headers.get("x-forwarded-proto"))
        response.set_cookie(
            COOKIE, text, httponly=True, samesite="strict", secure=secure, max_age=30 * 86_400
        )
        return response


def _badness(row: dict[str, Any]) -> float:
    """Regret as a share of the certificate: the groups with most of it come first."""
    certificate = row["certificate"]
    if not certificate or certificate <= 0.0:
        return float("inf") if row["regret"] > 0.0 else 0.0
    return float(row["regret"] / certificate)


def whole(value: float) -> str:
    """A count.

    >>> whole(12345.0)
    '12,345'
    """
    return f"{value:,.0f}"


def figure(value: float | None) -> str:
    """A figure with four digits.

    >>> figure(1234.5), figure(-0.00123), figure(None)
    ('1,234', '−0.00123', '–')
    """
    if value is None:
        return "–"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return text.replace("-", "−")


def short(text: str) -> str:
    """A text that has room on a page.

    >>> short("sex=female"), len(short("sex=" + "x" * 1_000))
    ('sex=female', 120)
    """
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def duration(seconds: float | None) -> str:
    """How long something is ago.

    >>> duration(90), duration(7200), duration(None)
    ('90 s', '2 h', '–')
    """
    if seconds is None:
        return "–"
    for size, name in ((172_800, "d"), (7_200, "h"), (120, "min")):
        if seconds >= size:
            return f"{seconds / {'d': 86_400, 'h': 3_600, 'min': 60}[name]:.0f} {name}"
    return f"{max(seconds, 0):.0f} s"


def leads(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """On which groups of a table the single model is ahead."""
    found = []
    for row in rows:
        single = row["baseline_regret"]
        if single is not None and row["regret"] - single > LEAD * abs(row["loss"]):
            ahead = figure(row["regret"] - single)
            found.append(f"The single model is ahead on {short(row['group'])}, by {ahead}.")
    return found


def svg(points: list[tuple[Any, ...]]) -> Markup:
    """Regret, its certificate and the single model's over the settled rounds, as a drawing."""
    known = [one for one in points if len(one) == 5 and one[2] is not None]
    if len(known) < 2:
        return Markup('<p class="quiet">The curve begins when labels have come at two moments.</p>')
    across = [float(one[0]) for one in known]
    lines = {
        name: [None if one[place] is None else float(one[place]) for one in known]
        for name, place in (("regret", 2), ("certificate", 3), ("single", 4))
    }
    low, high = _reach(lines)

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - 10) * (value - across[0]) / max(across[-1] - across[0], 1.0)

    def y(value: float) -> float:
        return 10 + (HEIGHT - BELOW - 10) * (high - value) / (high - low)

    def path(name: str) -> str:
        known = zip(across, lines[name], strict=True)
        return " ".join(f"{x(a):.1f},{y(v):.1f}" for a, v in known if v is not None)

    band = f"{path('regret')} {' '.join(reversed(path('certificate').split(' ')))}"
    drawn = [f'<polygon class="band" points="{band}"/>']
    for value in dict.fromkeys((low, 0.0, high)):
        drawn.append(
            f'<line class="axis" x1="{LEFT}" x2="{WIDTH - 10}" y1="{y(value):.1f}" '
            f'y2="{y(value):.1f}"/><text x="{LEFT - 6}" y="{y(value) + 4:.1f}" '
            f'text-anchor="end">{figure(value)}</text>'
        )
    for value, anchor in ((across[0], "start"), (across[-1], "end")):
        drawn.append(
            f'<text x="{x(value):.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">'
            f"{whole(value)}</text>"
        )
    drawn += [
        f'<polyline class="{name}" fill="none" stroke-width="2" clip-path="url(#inside)" '
        f'points="{path(name)}"/>'
        for name in lines
    ]
    inside = f'x="{LEFT}" y="8" width="{WIDTH - LEFT - 10}" height="{HEIGHT - BELOW - 6}"'
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Regret and certificate over '
        'settled rounds of the model"><clipPath id="inside">'
        f"<rect {inside}/></clipPath>{''.join(drawn)}</svg>"
    )


def _reach(lines: dict[str, list[float | None]]) -> tuple[float, float]:
    """What a drawing shows: regret and certificate, and of the single model's what is near them.

    >>> _reach({"regret": [1.0], "certificate": [2.0], "single": [50.0]})
    (0.0, 4.0)
    """
    own = [
        value for name in ("regret", "certificate") for value in lines[name] if value is not None
    ]
    low, high = min(*own, 0.0), max(*own, 0.0)
    span = high - low or 1.0
    single = [value for value in lines["single"] if value is not None]
    low, high = max(low - span, min([low, *single])), min(high + span, max([high, *single]))
    return (low, high) if high > low else (low, low + span)
