"""What is to be computed: the family of subsets, their cells on the support, and the plan with its price."""
