// A list of any length of which only what is near the screen is in the page. It is fetched a page of rows at a time.
const PAGE = 100, PAGES_KEPT = 12, BEYOND = 8;

export class Rows {
  // `fetchPage(offset, limit)` gives {matching, rows}; `make(row)` an element; `patch(element, row)` brings it up to date.
  constructor(holder, { fetchPage, make, patch, empty }) {
    Object.assign(this, { holder, fetchPage, make, patch, empty });
    this.count = 0;
    this.pages = new Map();
    this.asked = new Map();
    this.items = new Map();
    this.age = 0;
    this.due = 0;
    this.onScroll = () => {
      cancelAnimationFrame(this.due);
      this.due = requestAnimationFrame(() => this.draw());
    };
    addEventListener("scroll", this.onScroll, { passive: true });
    addEventListener("resize", this.onScroll);
  }

  close() {
    removeEventListener("scroll", this.onScroll);
    removeEventListener("resize", this.onScroll);
  }

  get height() {
    return parseFloat(getComputedStyle(this.holder).getPropertyValue("--run-row")) * parseFloat(getComputedStyle(document.documentElement).fontSize);
  }

  // Fetches anew what is shown. What was added above moves the list, and not what one looks at.
  async refresh({ fresh = false } = {}) {
    this.age++;
    this.asked.clear();
    const [first, last] = this.range();
    const before = this.count, away = this.holder.getBoundingClientRect().top < 0;
    const wanted = fresh ? [0] : [...new Set([0, Math.floor(first / PAGE), Math.floor(Math.max(first, last) / PAGE)])];
    const got = await Promise.all(wanted.map((page) => this.load(page)));
    if (got.some((one) => one === null)) return;
    for (const page of [...this.pages.keys()]) if (!wanted.includes(page)) this.pages.delete(page);
    if (!fresh && away && this.count > before) scrollBy(0, (this.count - before) * this.height);
    this.draw();
  }

  async load(page) {
    const age = this.age;
    const found = await this.fetchPage(page * PAGE, PAGE);
    if (age !== this.age) return null;
    this.pages.delete(page);
    this.pages.set(page, found.rows);
    if (this.pages.size > PAGES_KEPT) this.pages.delete(this.pages.keys().next().value);
    this.count = found.matching;
    return found;
  }

  rowAt(index) {
    return this.pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  range() {
    const height = this.height, top = -this.holder.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(top / height) - BEYOND);
    return [first, Math.min(this.count - 1, Math.ceil((top + innerHeight) / height) + BEYOND)];
  }

  draw() {
    const height = this.height, [first, last] = this.range(), wanted = [];
    this.holder.style.setProperty("height", `${this.count * height}px`);
    this.empty.hidden = this.count > 0;
    for (let index = first; index <= last; index++) {
      const row = this.rowAt(index);
      if (row) wanted.push(this.item(row, index, height));
      else this.want(Math.floor(index / PAGE));
    }
    const keep = new Set(wanted);
    for (const [id, item] of this.items) {
      if (keep.has(item) || item.contains(document.activeElement)) continue;
      item.remove();
      this.items.delete(id);
    }
    let next = this.holder.firstElementChild;
    for (const item of wanted) {
      if (item === next) next = next.nextElementSibling;
      else this.holder.insertBefore(item, next);
    }
  }

  want(page) {
    if (this.asked.has(page)) return;
    this.asked.set(page, true);
    this.load(page).then((found) => found && this.draw(), () => {}).finally(() => this.asked.delete(page));
  }

  item(row, index, height) {
    const face = JSON.stringify(row);
    let item = this.items.get(row.id);
    if (!item) {
      item = this.make(row);
      this.items.set(row.id, item);
    } else if (item.face !== face) this.patch(item, row);
    item.face = face;
    item.index = index;
    item.setAttribute("aria-setsize", this.count);
    item.setAttribute("aria-posinset", index + 1);
    item.style.setProperty("top", `${index * height}px`);
    return item;
  }

  // Goes to a row, which is fetched if it must be, and focuses it.
  async focus(index) {
    const at = Math.max(0, Math.min(this.count - 1, index)), height = this.height;
    if (at < 0) return;
    if (!this.rowAt(at)) await this.load(Math.floor(at / PAGE));
    const top = this.holder.getBoundingClientRect().top + at * height;
    if (top < 70) scrollBy(0, top - 70);
    else if (top + height > innerHeight - 70) scrollBy(0, top + height - innerHeight + 70);
    this.draw();
    this.items.get(this.rowAt(at)?.id)?.querySelector("a").focus({ preventScroll: true });
  }
}
