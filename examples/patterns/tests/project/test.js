import assert from "node:assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const source = readFileSync("src/main.ts", "utf8");
const { total } = await import("data:text/javascript," + encodeURIComponent(source));

test("the total of nothing is 0", () => assert.equal(total([]), 0));
test("the total of some prices", () => assert.equal(total([5, 7, 30]), 42));
