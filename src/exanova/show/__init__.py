"""Charts of a decomposition: records of plain values, and the charts made from them."""
