from crowdwise.paper.reproduce.tables import Table

TABLE = Table("Wins of 100", ["set_1", "a|b"], [["50 %", "1"], ["x&y", "−2"]], ["p ≤ 0.01."])


def test_markdown_keeps_its_columns_whatever_is_in_them():
    assert TABLE.markdown() == "\n".join(
        [
            "**Wins of 100**",
            "",
            "| set_1 | a\\|b |",
            "|:--|--:|",
            "| 50 % | 1 |",
            "| x&y | −2 |",
            "",
            "p ≤ 0.01.",
        ]
    )


def test_latex_escapes_what_latex_would_take_for_commands():
    latex = TABLE.latex()
    assert r"set\_1 & a|b \\" in latex
    assert r"50 \% & 1 \\" in latex
    assert r"x\&y & $-$2 \\" in latex
    assert r"p $\leq$ 0.01." in latex
    assert latex.count(r"\begin") == latex.count(r"\end") == 2


def test_a_backslash_is_escaped_once():
    assert r"\textbackslash{}" in Table("a\\b", ["x"], []).latex()
