"""Reconciles the two tables, checks the result, and reports once."""

from desk import connect, mail

MISMATCHED = "SELECT count(*) FROM customers_a a JOIN customers_b b USING (id) WHERE a.email != b.email"

with connect() as db:
    changed = db.execute(
        "UPDATE customers_b b SET email = a.email FROM customers_a a WHERE a.id = b.id AND a.email != b.email"
    ).rowcount
    (left,) = db.execute(MISMATCHED).fetchone()
text = f"Dear finance team, {changed} addresses were corrected and {left} mismatches are left. No action is needed."
mail("finance@co", text)
print(text)
