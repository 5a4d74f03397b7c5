"""The words of results.json. Needs nothing but Python itself."""

# The forms: where the result of a call goes.
IN_PLACE = "in place"  # into the data
INTO = "into"  # into an existing output; the data is kept
ALLOCATING = "allocating"  # into an output that the call allocates; the data is kept
FORMS = [INTO, ALLOCATING, IN_PLACE]

OURS = "ndscatter"

# The verdicts on a result.
OK = "ok"
OTHER_WINNER = "other winner"
WRONG = "wrong"
