"""Labels that grow while people answer: what to ask whom, and a journal that loses nothing."""
