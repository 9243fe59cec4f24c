"""What the rows can carry: effects as random tables, their variances chosen by likelihood, and the shrunken fit."""
