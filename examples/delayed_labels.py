"""Labels that come late, out of order, and after a restart: tickets."""

import random

import groupwise as gw

draw = random.Random(0)
model = gw.Groupwise([gw.by("ward")], loss=gw.losses.Square(low=0, high=30))
waiting: list[tuple[gw.Ticket, float]] = []


def admit() -> None:
    """A patient comes; the length of the stay is known when it ends."""
    age = draw.randint(20, 90)
    row = {"ward": draw.choice(["A", "B", "C"]), "age": age}
    stay = age / 4 + draw.uniform(0, 5)
    waiting.append((model.predict(row), stay))


def discharge() -> None:
    """One of those waiting leaves, and the model learns."""
    ticket, stay = waiting.pop(draw.randrange(len(waiting)))
    model.learn(ticket, stay)


for _ in range(500):
    admit()
    if len(waiting) > 25:
        discharge()

# The machine is restarted: the model goes to a file, outstanding tickets to text.
model.save("ward.gw")
texts = [(ticket.to_json(), stay) for ticket, stay in waiting]
model = gw.load("ward.gw")
waiting = [(gw.Ticket.from_json(text), stay) for text, stay in texts]

model.forget(waiting.pop()[0])  # moved away; this label will never come
while waiting:
    discharge()

try:
    model.learn(gw.Ticket.from_json(texts[0][0]), texts[0][1])
except gw.errors.TicketError as error:
    print(error)
print(model.regret())
