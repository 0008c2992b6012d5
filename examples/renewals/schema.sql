CREATE TABLE customers (
    id      integer PRIMARY KEY,
    email   text NOT NULL,
    due     boolean NOT NULL,
    renewed boolean NOT NULL DEFAULT false
);
CREATE TABLE renewals (
    customer_id integer PRIMARY KEY REFERENCES customers,
    status      text NOT NULL
);
INSERT INTO customers VALUES (1, 'ada@example.com', true), (2, 'bob@example.com', false);
