from tests.onefs import nas as nas
