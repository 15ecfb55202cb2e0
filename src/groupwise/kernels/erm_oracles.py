"""argmin over a class of policies of Σ_x ⟨f(x), costs_x⟩: stumps and tables.

``contexts`` has a row per distinct context, ``costs`` a row per context and a column per label.
Ties go to the policy with the smaller number.
"""

from groupwise.kernels.compiled import inlined, lean


@lean
def best_stump(contexts, count, costs, label, sums):
    """The number and cost of the best stump on a label; ``sums`` has room for all bits and one.

    0 and 1 are the constants, 2 + 2b is feature b, 3 + 2b its negation.
    """
    features = sums.size - 1
    for b in range(features + 1):
        sums[b] = 0.0
    for x in range(count):
        cost = costs[x, label]
        sums[features] += cost
        for b in range(features):
            sums[b] += cost * contexts[x, b]
    return best_sums(sums)


@inlined
def best_sums(sums):
    """The number and cost of the best stump, from sums of costs: per bit, then over everything."""
    features = sums.size - 1
    total = sums[features]
    place = 0
    least = 0.0
    if total < least:
        place, least = 1, total
    for b in range(features):
        if sums[b] < least:
            place, least = 2 + 2 * b, sums[b]
        if total - sums[b] < least:
            place, least = 3 + 2 * b, total - sums[b]
    return place, least


@inlined
def stump_value(stump, x):
    """What a stump predicts for the features x."""
    if stump < 2:
        return float(stump)
    value = x[(stump - 2) // 2]
    return value if stump % 2 == 0 else 1.0 - value


@lean
def best_row(table, count, costs):
    """The number and cost of the best policy of a table (policies × contexts × labels)."""
    place = 0
    least = 0.0
    for policy in range(table.shape[0]):
        total = 0.0
        for x in range(count):
            for label in range(table.shape[2]):
                total += table[policy, x, label] * costs[x, label]
        if policy == 0 or total < least:
            place, least = policy, total
    return place, least
