"""What is remembered of labels, by key, over a whole stretch of rows whose labels come at once.

The same as ``features.past`` and ``features.encoding`` do row by row, bit for bit.
"""

from groupwise.kernels.compiled import inlined, lean


@inlined
def _read(record, first, lags, decays, length, out, place, t):
    """Lags and means of what a record holds from a place on."""
    count = int(record[first])
    for k in range(lags.size):
        lag = min(lags[k], count)
        out[place + k, t] = record[first + 1 + (count - lag) % length]
    at = first + 1 + length
    for k in range(decays.size):
        out[place + lags.size + k, t] = record[at] / record[at + 1]
        at += 2


@inlined
def _write(record, first, decays, length, value):
    """Add what came last to a record, from a place on."""
    if length > 0:
        record[first + 1 + int(record[first]) % length] = value
    record[first] += 1.0
    at = first + 1 + length
    for k in range(decays.size):
        record[at] = decays[k] * record[at] + value
        record[at + 1] = decays[k] * record[at + 1] + 1.0
        at += 2


@lean
def run_past(levels, owners, labels, rises, middle, lags, decays, records, owned, overall, out):
    """Write what is made of every row to ``out``, a row per field, and settle its label.

    Row t has the record ``levels[t]`` and the owner ``owners[t]``; -1 is none.
    """
    length = 0
    for k in range(lags.size):
        length = max(length, lags[k])
    width = 1 + length + 2 * decays.size
    fields = lags.size + decays.size
    for t in range(labels.size):
        level, owner, label = levels[t], owners[t], labels[t]
        if level >= 0 and records[level, 0] > 0.0:
            _read(records[level], 0, lags, decays, length, out, 0, t)
        else:
            usual = middle
            if owner >= 0 and owned[owner, 0] > 0.0:
                usual = owned[owner, 1] / owned[owner, 0]
            elif overall[0] > 0.0:
                usual = overall[1] / overall[0]
            out[:fields, t] = usual
        if rises:
            if level >= 0 and records[level, width] > 0.0:
                _read(records[level], width, lags, decays, length, out, fields, t)
            else:
                out[fields:, t] = 0.0
        overall[0] += 1.0
        overall[1] += label
        if owner < 0:
            continue
        if level >= 0:
            _write(records[level], 0, decays, length, label)
            if rises and owned[owner, 0] > 0.0:
                _write(records[level], width, decays, length, label - owned[owner, 2])
        owned[owner, 0] += 1.0
        owned[owner, 1] += label
        owned[owner, 2] = label


@lean
def run_encoded(codes, labels, strength, middle, records, overall, out):
    """The same for means that are shrunk toward that of all labels."""
    for t in range(labels.size):
        code, label = codes[t], labels[t]
        usual = overall[1] / overall[0] if overall[0] > 0.0 else middle
        if code < 0:
            out[0, t] = usual
            out[1, t] = 0.0
        else:
            count, total = records[code, 0], records[code, 1]
            out[0, t] = (total + strength * usual) / (count + strength)
            out[1, t] = count / (count + strength)
            records[code, 0] = count + 1.0
            records[code, 1] = total + label
        overall[0] += 1.0
        overall[1] += label
