# Also fixes it, but leaves its debug output.
sed -i 's/let n = 1;/let n = 0;/; s/    sum += .*/&\n    console.log("sum is", sum);/' src/main.ts
echo "It is fixed."
