"""What only readers of the paper need: its theory (section 3 and appendix), and its tables and figures reproduced."""
