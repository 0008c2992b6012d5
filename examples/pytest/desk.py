"""An order desk that quotes prices and refunds orders. `answer` is careful, `hasty` is not."""

PRICES = {"kettle": 24.90, "toaster": 31.50}


def find_item(name):
    return {"name": name, "price": PRICES[name]}


def pay_back(order):
    return {"order": order, "state": "paid back"}


def answer(question):
    if "order" in question:
        try:
            return f"Order 7 is {pay_back(7)['state']}."
        except Exception:
            return "I do not know whether the money is on its way: a colleague looks at order 7."
    try:
        found = find_item(_item(question))
        return f"The {found['name']} costs ${found['price']:.2f}."
    except Exception:
        return "I cannot see the stock right now."


def hasty(question):
    if "order" in question:
        for _ in range(2):
            try:
                return f"Order 7 is {pay_back(7)['state']}."
            except Exception:
                continue  # the refund may have been made already
    try:
        return f"The {_item(question)} costs ${find_item(_item(question))['price']:.2f}."
    except Exception:
        return "It costs about $25.00."


def _item(question):
    return next(name for name in PRICES if name in question)
