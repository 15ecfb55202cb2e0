"""Ridge learners whose rows are too much for the matrix P: large, nearly collinear, of any scale.

They keep the upper triangular R and the vector z with RᵀR = A = λI + Σ w x xᵀ and Rθ = z, which
orthogonal transformations alone change. With Rᵀu = x the advice is z·u, and xᵀPx = u·u. A row
of any size enters by rotations, which its u gives all at once (``triangles.absorb``). Of a learner
that forgets, R and z are those of A / strength, so that only the weights of new rows grow. A column
that no row has used yet has √λ on the diagonal.

A column that hardly differs from a multiple of another one (both have a large offset, say) would
lose digits of the difference with every rotation, because both entries of R are rounded. So rows
enter as x_j − q_j x_p, with multiples q of one *pivot* column p that are fixed numbers: the
difference is rounded once, and is of its own size. R has the new columns R_j − q_j R_p, still
triangular since q_j = 0 up to p; u and z are the same. The multiples are those of least squares,
chosen anew whenever the number of rows has doubled, which costs no digit.

Compiled when a group first needs it.
"""

import numpy as np

from groupwise.kernels.cells import fma
from groupwise.kernels.compiled import Kernel, compiled, inlined, lean
from groupwise.kernels.gram import minus, times
from groupwise.kernels.hindsight import HELD
from groupwise.kernels.layout import LANES, open_place
from groupwise.kernels.ridge import (
    ADVISE,
    AHEAD,
    EACH,
    FAINT,
    FORGETTING,
    FORWARD,
    NONE,
    PENALTY,
    ROOM,
    ROUND,
    TAKE_OVER,
    TASK,
    TELL,
    WHO,
    follows,
    give_matrices,
    leads,
    leans,
    models_of,
    speak,
    speak_leaning,
    thoughts,
)
from groupwise.kernels.stretch import cells_of, open_stretch
from groupwise.kernels.triangles import absorb, substitute
from groupwise.kernels.vectors import dense_dot, subtract_outer

PATIENCE = 32
"""Rows after which a stiff learner is first asked whether it is calm now; then twice as many."""
CALM = 600.0
"""The mean of Σ P_jj x_j² over the rows so far below which it is."""
LEAN = 1e3
"""A column leans on another where what it has in common with it is so many times the rest."""
EPSILON = float(np.finfo(np.float64).eps)


@Kernel
def serve(state, message):
    """Advice of a stiff learner, and its update; or make a calm learner stiff."""
    place, stretch = open_place(state), open_stretch(message)
    group, i, k = stretch.group, stretch.marks[ROUND], stretch.marks[WHO]
    task = stretch.marks[TASK]
    first = place.learners * AHEAD * place.width[group] + HELD
    if task == TAKE_OVER:
        give_matrices(place, group)
        factorise(models_of(place, group), k, place.parameters, stretch.work[first:])
    mine = models_of(place, group)
    width, used = mine.theta.shape[1], stretch.width
    work = stretch.work[first : first + ROOM * width].reshape((ROOM, width))
    solved, rest, before = work[0, :used], work[1, :used], work[2, :used]
    if task == TELL:
        tell_coefficients(place, stretch, mine, i, k, rest)
        return stretch.last
    first, last, start, stop = cells_of(stretch, i)
    xi, xv = stretch.positions[first:last], stretch.values[start:stop]
    top = lay(rest, xi, xv)
    take_multiples(mine, k, rest)
    solved[:top] = 0.0
    entry, y = stretch.entries[i], stretch.labels[stretch.rows[i]]
    weight = stretch.weights[entry] / mine.strength[k]
    for j in range(used):
        before[j] = mine.theta[k, j]
    leaning = leans(place, k) != NONE and task != TAKE_OVER
    if leaning:
        turned = lean_stiffly(place, stretch, mine, i, k, work[3, :used], work[4, :used])
    if task == ADVISE:
        substitute(mine.inverse[k], rest, solved, top, used)
    else:
        absorb(mine.inverse[k], mine.theta[k], rest, solved, weight, y, top, used)
    estimate = dense_dot(before, solved, used)
    spread = weight * dense_dot(solved, solved, used)
    advice = estimate
    forward = place.parameters[k * EACH + FORWARD] != 0.0
    if forward:
        advice /= 1.0 + spread
    if task != TAKE_OVER:
        speak(place, stretch, i, k, advice)
    if leaning:
        more = 0.0
        if turned:
            more = place.parameters[k * EACH + PENALTY] * dense_dot(work[4, :used], solved, used)
        speak_leaning(place, stretch, i, k, estimate, more)
    if task == ADVISE:
        return stretch.last
    lost = (y - estimate) / np.sqrt(1.0 + spread)
    mine.minimum[k] += stretch.weights[entry] * lost * lost
    if forward:
        mine.log_determinant[k] += np.log1p(spread)
    mine.mass[k] += weight
    grow_older(mine, k, place.parameters, work)
    return stretch.last


@lean
def lean_stiffly(place, stretch, mine, i, learner, row, out):
    """R⁻ᵀθ_on, the product of which with R⁻ᵀx is (P x)·θ_on · strength; is there a θ_on?"""
    if not follows(stretch):
        return False
    theirs = stretch.leading[thoughts(place, stretch, i, leads(place, learner)) :]
    row[:] = 0.0
    for column in range(stretch.known):
        row[column] = theirs[stretch.named[stretch.origin + column]]
    take_multiples(mine, learner, row)
    substitute(mine.inverse[learner], row, out, 0, row.size)
    return True


@lean
def tell_coefficients(place, stretch, mine, i, learner, theta):
    """θ of a stiff learner, for those who lean to it: Rθ = z in the columns that R has."""
    factor, multiples, pivot = mine.inverse[learner], mine.diagonal[learner], mine.pivot[learner]
    for row in range(theta.size - 1, -1, -1):
        total = mine.theta[learner, row]
        for column in range(row + 1, theta.size):
            total = fma(-factor[row, column], theta[column], total)
        theta[row] = total / factor[row, row]
    for column in range(theta.size):
        if column != pivot:
            theta[pivot] = fma(-multiples[column], theta[column], theta[pivot])
    out = stretch.leading[thoughts(place, stretch, i, learner) :]
    for column in range(stretch.known):
        out[stretch.named[stretch.origin + column]] = theta[column]


@inlined
def grow_older(mine, k, parameters, work):
    """After a row of a stiff learner: multiples are chosen anew, or it becomes calm, at times."""
    rows = mine.stiff[k]
    mine.stiff[k] = rows + 1
    if rows & (rows - 1) == 0:
        choose_multiples(mine, k, work[0])
    # Where calm learners fold: products that were formed ahead do not reach beyond it.
    if mine.waiting[0] == HELD - 1 and mine.stiff[k] > PATIENCE << min(mine.checks[k], 50):
        mine.checks[k] += 1
        if is_calm(mine, k, parameters, work):
            invert(mine, k, parameters, work)


@inlined
def lay(row, xi, xv):
    """Write a row, with zeros where it has none; returns where its first four columns begin."""
    first, last = 0, 0
    if xi.size == 0:
        last = xv.size
        for j in range(last):
            row[j] = xv[j]
    for j in range(last, row.size):
        row[j] = 0.0
    if xi.size > 0:
        first = row.size
        for j in range(xi.size):
            if xv[j] != 0.0:
                row[xi[j]] = xv[j]
                first = min(first, xi[j])
    return first // LANES * LANES


@inlined
def take_multiples(mine, learner, row):
    """x_j − q_j x_p in place of x_j."""
    multiples, x = mine.diagonal[learner], row[mine.pivot[learner]]
    for j in range(row.size):
        row[j] = fma(-multiples[j], x, row[j])


@inlined
def original(mine, learner, i, j):
    """What R_ij would be if no multiples were taken."""
    factor, multiples = mine.inverse[learner], mine.diagonal[learner]
    return fma(multiples[j], factor[i, mine.pivot[learner]], factor[i, j])


@lean
def choose_multiples(mine, learner, work):
    """Let columns that lean on a pivot enter as their difference from its multiples.

    Where one leans on others in spite of the multiples, the pivot becomes that of these which it
    leans on most. ``work`` has room for all columns.
    """
    factor, multiples = mine.inverse[learner], mine.diagonal[learner]
    width = multiples.size
    leaning, most = 0, 0.0
    for j in range(width):
        above = 0.0
        for i in range(j):
            above = max(above, abs(factor[i, j]))
        if above > most * factor[j, j]:
            leaning, most = j, above / factor[j, j]
    if most > LEAN:
        pivot = best_pivot(mine, learner, leaning)
        if pivot != mine.pivot[learner]:
            turn_to(mine, learner, pivot, work)
    pivot = mine.pivot[learner]
    power = 0.0
    for i in range(pivot + 1):
        power += factor[i, pivot] * factor[i, pivot]
    for j in range(pivot + 1, width):
        common, above = 0.0, 0.0
        for i in range(pivot + 1):
            common += factor[i, pivot] * factor[i, j]
            above = max(above, abs(factor[i, j]))
        if multiples[j] != 0.0 or above > LEAN * factor[j, j]:
            new = multiples[j] + common / power
            for i in range(pivot + 1):
                factor[i, j] = fma(multiples[j] - new, factor[i, pivot], factor[i, j])
            multiples[j] = new


@lean
def best_pivot(mine, learner, leaning):
    """The earlier column whose multiple leaves least of a column."""
    pivot, least = 0, np.inf
    for k in range(leaning):
        power, common, left = 0.0, 0.0, 0.0
        for i in range(k + 1):
            cell = original(mine, learner, i, k)
            power += cell * cell
            common += cell * original(mine, learner, i, leaning)
        for i in range(leaning):
            cell = original(mine, learner, i, leaning)
            if i <= k:
                cell -= common / power * original(mine, learner, i, k)
            left = max(left, abs(cell))
        if left < least:
            pivot, least = k, left
    return pivot


@lean
def turn_to(mine, learner, pivot, chosen):
    """Let columns lean on another pivot; ``chosen`` has room for its multiples."""
    factor, multiples, width = mine.inverse[learner], mine.diagonal[learner], mine.theta.shape[1]
    power = 0.0
    for i in range(pivot + 1):
        cell = original(mine, learner, i, pivot)
        power += cell * cell
    chosen[:width] = 0.0
    for j in range(pivot + 1, width):
        common, above = 0.0, 0.0
        for i in range(j):
            cell = original(mine, learner, i, j)
            above = max(above, abs(cell))
            if i <= pivot:
                common += original(mine, learner, i, pivot) * cell
        if above > LEAN * factor[j, j]:
            chosen[j] = common / power
    for i in range(width):
        lean_anew(factor[i], multiples, mine.pivot[learner], chosen, pivot)
    for j in range(width):
        multiples[j] = chosen[j]
    mine.pivot[learner] = pivot


@inlined
def lean_anew(row, multiples, pivot, chosen, other):
    """x_j − m_j x_π in place of x_j − q_j x_p.

    To twice the digits: what both have in common of a column may be all but the last ones of it.
    """
    x = row[pivot]
    high, low = minus(row[other], 0.0, *times(-multiples[other], 0.0, x, 0.0))
    for j in range(row.size):
        if multiples[j] != 0.0 or chosen[j] != 0.0:
            cell, rest = minus(row[j], 0.0, *times(-multiples[j], 0.0, x, 0.0))
            row[j] = minus(cell, rest, *times(chosen[j], 0.0, high, low))[0]


@lean
def lean_no_more(mine, learner):
    """The columns as they are."""
    factor, multiples, pivot = mine.inverse[learner], mine.diagonal[learner], mine.pivot[learner]
    for j in range(pivot + 1, multiples.size):
        for i in range(pivot + 1):
            factor[i, j] = fma(multiples[j], factor[i, pivot], factor[i, j])
        multiples[j] = 0.0


@lean
def is_calm(mine, learner, parameters, work):
    """Is the mean of Σ P_jj x_j² below CALM? Columns that no row has used do not count."""
    factor, width = mine.inverse[learner], mine.theta.shape[1]
    solved, rest = work[0], work[1]
    unused = np.sqrt(parameters[learner * EACH + PENALTY])
    total = 0.0
    for j in range(width):
        power = 0.0
        for i in range(j + 1):
            cell = original(mine, learner, i, j)
            power += cell * cell
        if power != unused * unused:
            rest[:] = 0.0
            solved[:] = 0.0
            rest[j] = 1.0
            take_multiples(mine, learner, rest)
            substitute(factor, rest, solved, j // LANES * LANES, width)
            total += power * dense_dot(solved, solved, width)
    return total < CALM * mine.mass[learner]


@lean
def factorise(mine, learner, parameters, work):
    """Make a calm learner stiff: R and z in the place of P and θ.

    P = VᵀV with V lower triangular, from the last column to the first, and R = V⁻ᵀ.
    """
    matrix, theta, held = mine.inverse[learner], mine.theta[learner], mine.held[learner]
    penalty = parameters[learner * EACH + PENALTY]
    diagonal, width = mine.diagonal[learner], theta.size
    subtract_outer(matrix, held[: mine.waiting[0]], width)
    held[:, :] = 0.0
    unused = 1.0 / penalty
    for i in range(width):
        diagonal[i] = matrix[i, i]
    for i in range(width - 1, -1, -1):
        row = matrix[i]
        pivot = np.sqrt(max(row[i], EPSILON * diagonal[i]))
        row[i] = pivot
        for j in range(i):
            row[j] /= pivot
        for m in range(i):
            factor, other = row[m], matrix[m]
            if factor != 0.0:
                for j in range(m + 1):
                    other[j] -= factor * row[j]
    invert_lower(matrix, work, width)
    for i in range(width):
        for j in range(i):
            matrix[j, i] = matrix[i, j]
            matrix[i, j] = 0.0
    for i in range(width):
        if diagonal[i] == unused and stands_alone(matrix, i, width):
            matrix[i, i] = np.sqrt(penalty)
    for i in range(width):
        work[i] = dense_dot(matrix[i], theta, width)
    for i in range(width):
        theta[i] = work[i]
        diagonal[i] = 0.0
    mine.stiff[learner] = 1
    mine.pivot[learner] = 0


@inlined
def stands_alone(matrix, i, width):
    """Has an upper triangular matrix nothing beside its i-th diagonal cell?

    1/λ alone does not tell that no row has used a column: where another one of the rows is 10⁸
    times as large, that is what is left of P_ii.
    """
    beside = 0
    for j in range(i):
        beside += matrix[j, i] != 0.0
    for j in range(i + 1, width):
        beside += matrix[i, j] != 0.0
    return beside == 0


@lean
def invert(mine, learner, parameters, work):
    """Make a stiff learner calm: R⁻¹R⁻ᵀ in the place of R, and θ = R⁻¹z."""
    matrix, theta, diagonal = mine.inverse[learner], mine.theta[learner], mine.diagonal[learner]
    penalty = parameters[learner * EACH + PENALTY]
    width, line, weights = theta.size, work[0], work[1]
    lean_no_more(mine, learner)
    for i in range(width):
        diagonal[i] = matrix[i, i]
        for j in range(i):
            matrix[i, j] = matrix[j, i]
            if matrix[i, j] != 0.0:
                diagonal[i] = 0.0
    invert_lower(matrix, line, width)
    weights[:] = 0.0
    for i in range(width):
        row, z = matrix[i], theta[i]
        for j in range(i + 1):
            line[j] = row[j]
            weights[j] += z * row[j]
            row[j] = 0.0
        for m in range(i + 1):
            factor, other = line[m], matrix[m]
            if factor != 0.0:
                for j in range(m + 1):
                    other[j] += factor * line[j]
    for i in range(width):
        theta[i] = weights[i]
        for j in range(i):
            matrix[j, i] = matrix[i, j]
        if diagonal[i] == np.sqrt(penalty):
            matrix[i, i] = 1.0 / penalty
        diagonal[i] = matrix[i, i]
    mine.stiff[learner] = 0


@lean
def invert_lower(matrix, line, width):
    """The inverse of a lower triangular matrix, in place; what is above the diagonal stays."""
    for i in range(width):
        row = matrix[i]
        inverse = 1.0 / row[i]
        for j in range(i):
            line[j] = row[j]
            row[j] = 0.0
        for k in range(i):
            factor, other = line[k], matrix[k]
            if factor != 0.0:
                for j in range(k + 1):
                    row[j] -= factor * other[j]
        for j in range(i):
            row[j] *= inverse
        row[i] = inverse


@compiled
def restore_penalty(mine, parameters):
    """Give learners whose penalty has become faint their whole penalty again.

    A grows by λ(1 − strength) on the diagonal, and Σ w y x stays as it is: the same as rows
    √(λ(1 − strength)) e_j with labels 0. Columns that no row has used get 1/λ, to the digit.
    """
    width = mine.theta.shape[1]
    work = np.empty((ROOM, width))
    for k in range(len(mine.strength)):
        strength = mine.strength[k]
        if strength < FAINT and parameters[k * EACH + FORGETTING] < 1.0:
            was_calm = mine.stiff[k] == 0
            if was_calm:
                factorise(mine, k, parameters, work[0])
            renew(mine, k, parameters[k * EACH + PENALTY], strength, work)
            mine.mass[k] *= strength
            mine.strength[k] = 1.0
            if was_calm:
                invert(mine, k, parameters, work)


@compiled
def renew(mine, learner, penalty, left, work):
    """Of A / strength of a stiff learner only the share ``left`` is left, of its penalty all."""
    factor, theta, width = mine.inverse[learner], mine.theta[learner], mine.theta.shape[1]
    root = np.sqrt(left)
    for j in range(width):
        work[0, j] = factor[j, j]
        for i in range(j):
            if factor[i, j] != 0.0:
                work[0, j] = 0.0
    used = work[0] != np.sqrt(penalty)
    for i in range(width):
        theta[i] *= root
        for j in range(i, width):
            if used[j]:
                factor[i, j] *= root
    for j in range(width):
        if used[j]:
            top = j // LANES * LANES
            work[:] = 0.0
            work[1, j] = 1.0
            take_multiples(mine, learner, work[1])
            absorb(factor, theta, work[1], work[0], penalty * (1.0 - left), 0.0, top, width)
