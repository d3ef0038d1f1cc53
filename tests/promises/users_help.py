"""What the command says."""

test_line("24 things a newcomer types wrong: each gets a line that says what is wrong and what to do", "all", "cargo", "test", "--locked", "--test", "interface", "newcomer", set_name="users")
