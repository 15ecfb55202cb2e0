"""Which windows are awake in a round, and which end and begin after it.

A group's clock counts its settled rounds. On level j it has windows of 2^(j + shift) rounds, which
begin where the clock is a multiple of that, the first of them when it is as long. So on every level
that the clock has reached there is one that is awake, ``live``, and the one before it, ``before``,
which sleeps until the next one ends.
"""

from groupwise.kernels.compiled import inlined, lean

BEGUN, FREE, NEXT = range(3)
"""How many windows have begun, how many numbers are free, and the first that nobody had yet."""
NUMBER, GROUP, LEVEL, START, TO_SLEEP, TO_FREE = range(6)
"""What is written down of a window that begins, and of those that it takes the place of."""


@inlined
def levels(clock, shift):
    """How many windows of a group are awake."""
    count = 0
    left = clock >> shift
    while left > 0:
        count += 1
        left >>= 1
    return count


@inlined
def beginning(clock, shift):
    """How many windows begin when the clock has come to this."""
    if clock & ((1 << shift) - 1):
        return 0
    left, count = clock >> shift, 1
    while left & 1 == 0:
        count += 1
        left >>= 1
    return count


@inlined
def turn(group, shift, clock, live, before, free, marks, log):
    """A round of a group is settled: its clock goes on, and windows end and begin."""
    clock[group] += 1
    for level in range(beginning(clock[group], shift)):
        if marks[FREE] > 0:
            marks[FREE] -= 1
            number = free[marks[FREE]]
        else:
            number = marks[NEXT]
            marks[NEXT] += 1
        line = log[marks[BEGUN]]
        line[NUMBER], line[GROUP], line[LEVEL] = number, group, level
        line[START] = clock[group] >> shift
        line[TO_SLEEP], line[TO_FREE] = live[group, level], before[group, level]
        before[group, level], live[group, level] = live[group, level], number
        marks[BEGUN] += 1


@lean
def advance(groups, shift, clock, live, before, free, marks, log):
    """A round of these groups is settled."""
    for a in range(groups.size):
        turn(groups[a], shift, clock, live, before, free, marks, log)


@lean
def count(groups, shift, clock, out):
    """How many windows are awake in some rounds, one after the other, and how many begin.

    The clocks go on meanwhile.
    """
    awake, begun = 0, 0
    for e in range(groups.size):
        awake += levels(clock[groups[e]], shift)
        clock[groups[e]] += 1
        begun += beginning(clock[groups[e]], shift)
    out[0], out[1] = awake, begun


@lean
def expand(
    indptr,
    groups,
    weights,
    shift,
    clock,
    live,
    before,
    free,
    marks,
    log,
    ends,
    numbers,
    shares,
    own,
):
    """The awake groups of rows with the windows of each before them: ``ends, numbers, shares``.

    ``own`` are the places of the groups themselves. The rows are settled one after the other.
    """
    place = 0
    ends[0] = 0
    for t in range(indptr.size - 1):
        for e in range(indptr[t], indptr[t + 1]):
            for level in range(levels(clock[groups[e]], shift)):
                numbers[place], shares[place] = live[groups[e], level], weights[e]
                place += 1
        for e in range(indptr[t], indptr[t + 1]):
            numbers[place], shares[place] = groups[e], weights[e]
            own[e] = place
            place += 1
        for e in range(indptr[t], indptr[t + 1]):
            turn(groups[e], shift, clock, live, before, free, marks, log)
        ends[t + 1] = place
