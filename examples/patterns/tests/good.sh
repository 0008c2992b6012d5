# Finds the mistake, fixes it, and changes nothing else.
sed -i 's/let n = 1;/let n = 0;/' src/main.ts
npm test > /dev/null 2>&1 && echo "total() left out the first price. It is fixed, and the tests pass."
