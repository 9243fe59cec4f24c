"""What a decomposition shows: records of plain values, the charts and the report made from them."""
