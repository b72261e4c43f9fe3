"""How pictures are cut, and their values scaled: the same for every framework."""

# A part to train on: its share of the picture's area, and its width to its height (Szegedy et al.
# 2014, section 6).
SHARE, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
CENTRE_SHARE = 0.875  # of a test picture's shorter side that is looked at
# ImageNet's, per channel, of values from 0 to 1: what ResNet's published accuracies were had with.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
