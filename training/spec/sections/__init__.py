"""The recipe's sections, one a file. Every field says what it does and in which unit."""
