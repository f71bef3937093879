"""CONFORMANCE.md names tests that there are, and covers the README's table."""
import os
import re
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
README_TITLE = "draft-ietf-httpapi-idempotency-key-header | Stripe v1"


def read(*names):
    with open(os.path.join(HERE, *names)) as f:
        return f.read()


def table(text, title):
    """The rows of the table whose first line has this title, as cells."""
    lines = text[text.index(title):].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("| "):
            break
        rows.append([cell.strip() for cell in line.split("|")[1:-1]])
    return rows


class Conformance(unittest.TestCase):
    def rows(self):
        rows = table(read("CONFORMANCE.md"), "| in the README | requirement")
        self.assertGreater(len(rows), 25)
        return rows

    def test_gateway__each_row_of_the_table_is_a_test(self):
        """A claim whose test was renamed or taken out is only a claim."""
        for row in self.rows():
            if "support.py" in row[-1]:
                continue
            module = None
            for name in re.findall(r"`(\w+)`", row[-1]):
                if name.startswith("test_"):
                    module, found = name, False
                    tests = set(re.findall(r"def test_gateway__(\w+)",
                                           read(f"{module}.py")))
                    continue
                found = True
                self.assertIn(name, tests, module)
            self.assertTrue(module and found, row)

    def test_gateway__each_row_of_the_readme_is_in_the_table(self):
        """What the README claims in short would be a claim without a test."""
        readme = table(read("..", "..", "README.md"), README_TITLE)
        covered = {row[0] for row in self.rows()} - {"-"}
        self.assertEqual({row[0] for row in readme}, covered)
        chinese = table(read("..", "..", "README.zh-CN.md"), README_TITLE)
        self.assertEqual([len(row) for row in chinese],
                         [len(row) for row in readme])


if __name__ == "__main__":
    unittest.main()
