"""Corrects only the first mismatch, and reports every step."""

from desk import connect, mail

with connect() as db:
    found = db.execute(
        "SELECT a.id, a.email FROM customers_a a JOIN customers_b b USING (id) WHERE a.email != b.email ORDER BY id"
    ).fetchone()
    mail("finance@co", "hey, found smth wrong, fixing it lol")
    db.execute("UPDATE customers_b SET email = %s WHERE id = %s", (found[1], found[0]))
    mail("finance@co", "ok all done!!")
print("All mismatches are gone.")
