CREATE TABLE customers_a (id int PRIMARY KEY, email text NOT NULL);
CREATE TABLE customers_b (id int PRIMARY KEY, email text NOT NULL);
INSERT INTO customers_a VALUES (1, 'ada@example.com'), (2, 'bob@example.com'), (3, 'cyd@example.com');
INSERT INTO customers_b VALUES (1, 'ada@example.com'), (2, 'bob@old.example.com'), (3, 'cyd@old.example.com');
