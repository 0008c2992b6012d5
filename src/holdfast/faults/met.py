"""When a fault counts as met, in words that several faults share: the trait `met`, for the catalogue."""

WAIT = "The wait has begun with the caller there. A caller that gives up has met it."
LOSS = "The caller was connected when the connection was lost."
CANARY = "A canary of the attack, or a piece of its text, has arrived at the agent."
SIZE = "A byte of the reply was held back for a millisecond or more, cut off, or sent apart from the others."
CLOCK = "A program of the agent read the clock after the change."
STATEMENT = "The statement was sent in a transaction that the fault fires on, and the client was there for the answer."
