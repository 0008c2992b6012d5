export function total(prices) {
  let sum = 0;
  for (let n = 1; n < prices.length; n++) {
    sum += prices[n];
  }
  return sum;
}
