"""Every constant that changes answers, with what it is, why it has this value, and the table that supports it.

At the end, what reports show at most.

Tables are in docs/evidence/trust.md unless another page is named.
"""

from __future__ import annotations

# --- Near copies share a vote (crowd/vote_sharing). ---
# Near copies disagree at most 1 - this times as often as two independent annotators would. Below it, honest annotators
# who are good, or variants of one model, agree as much.
COPY_KAPPA = 0.95
# On fewer examples no one is a copy: two who are right agree as well, and others may not have labelled them.
COPY_EXAMPLES = 10
# Votes of the crowd's frequencies added to those of others on an example, so that two annotators alone can be compared.
OTHERS_SMOOTHING = 1e-3

# --- Flags (crowd/flags). ---
# With fewer labels than this, an annotator is flagged: their expertise is mostly the crowd's.
FEW_LABELS = 3
# An annotator gives always the same answer if there are this many of them, and others who labelled the same examples
# give another one at least this often.
SAME_ANSWERS, OTHER_ANSWERS = 20, 0.25

# --- Correlated errors (results/_error_correlation). ---
# Examples without correlation that are added to those that two annotators share.
UNCORRELATED_EXAMPLES = 7.0

# --- The rounds over labels (em/labels_only). ---
# No annotator's merit, nor the crowd's mean, is taken to be less: an example labelled only by annotators without merit
# still has their votes.
LEAST_MERIT = 1e-3
# Vote shares are raised to this power at the start: they are noisy, so they understate the frequent class.
START_POWER = 2.0
# Below this share of labels on shared examples, rounds to convergence with independent errors lose labels (simulated).
FEW_COMPARED = 0.5
# Rounds: more help where errors are independent, and harm where they are shared or where annotators are weak.
LABEL_ROUNDS = 2
# Rounds over labels at most, where they go on to convergence.
MOST_LABEL_ROUNDS = 1000
# Labels of the crowd's quality added to every row of an annotator's matrix.
CROWD_STRENGTH = 4.0
# Before any label is seen, annotators are right so often beyond guessing; that counts as so many labels of the crowd.
# So many labels are also the most that comparisons of one annotator with others show about any other annotator.
ASSUMED_RIGHT, ASSUMED_LABELS = 0.8, 5.0
# The correlation of residuals at which half of the M-step is the votes'; it is what public crowds show.
USUAL_CORRELATION = 0.04

# --- Ratings alone (em/ratings). ---
# Standard deviation of slopes around one before any rating is seen: .1 to .5 give the same errors on simulated crowds.
SLOPE_SPREAD = 0.25

# --- Stated probabilities (em/common_errors). ---
# n labels count as n^(1 - b) independent ones if errors are in common as on public crowds.
DISCOUNT = 0.7
# With so many labels per annotator and class, half of the residual correlation is what the fit has overfitted.
OVERFITTED_LABELS = 30.0
# Relative standard error of an annotator's spread of levels that remains however many labels there are: the consensus
# is not the truth (docs/evidence/ordinal.md).
SPREAD_ERROR = 0.2

# --- Known answers (truths/). ---
# Precision, around zero, of what an annotator's answer adds to the score of a class.
ANSWER_PRECISION = 10.0
# No probability is taken to be smaller: no model knows its own errors so well.
SMALLEST_PROBABILITY = 1e-4
# How many times as probable it is, before known answers are seen, that labels alone predict them better than a
# regression: the usual level of evidence. One to one gains more on average, and costs some crowds two points.
WITHOUT_TRUTHS_ODDS = 20.0
# Known answers are no random draw if a distribution of theirs is further than this from that of the others, and
# further than so many times what chance makes it differ (level .003).
CHOSEN_DISTANCE, CHOSEN_NOISE = 0.4, 1.8
# Known answers, and examples to compare them with, of which more make nothing surer.
COMPARED_EXAMPLES = 5000

# --- Logistic regression (logistic/fit). ---
# Penalties to choose from, in units of the curvature of the loss, the simplest classifier first: beyond it only the
# scale of scores falls, which their temperature sets.
L2_GRID = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)

# --- Ridge (ridge/rounds, ridge/fitted). ---
# Labels of the crowd's average quality added to those of an annotator, as far as some of theirs are missing.
PRIOR_LABELS = 3.0
# No mean squared error is taken to be smaller, in units of the labels' own: a perfect annotator would count infinitely.
SMALLEST_ERROR = 1e-8
# No variance of the model's scores around the true ratings is taken to be smaller than this part of that around the
# labels.
LEAST_MODEL_ERROR = 0.02

# --- Samples and folds (rows/, weights/, ridge/fitted). ---
# Examples that are enough for a temperature, a ranking, or folds of nearly equal size that are drawn independently.
ENOUGH_EXAMPLES = 20_000
# Examples that are enough for the penalty of a classifier, and for the temperature and offsets of its scores.
SCALING_EXAMPLES = 10_000
# Labels per annotator and class that are enough for confusion matrices: rates are then known to about a percent.
LABELS_PER_CLASS = 1000
# Parts that examples are split into, so that each is scored by a model that has not seen it.
N_FOLDS = 5
# Examples are called easy from the lowest disagreement upwards until they are this share of all.
EASIEST_SHARE = 0.25

# --- Labels and a classifier (em/with_features). ---
# Shares of labels that are tried as right beyond guessing, to judge the only vote of an example.
SHARES_RIGHT = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
# Fits of the classifier, each to a better consensus: one loses on weak crowds, three lose where errors are shared.
FEATURE_ROUNDS = 2
# Share added to the frequency of a class before offsets are estimated: no offset is learned for rarer classes.
OFFSET_SMOOTHING = 1e-3

# --- Weights by disagreement (weights/steepness). ---
# Steepnesses that are compared by how well held-out examples that annotators agree on are ranked: no weights, and the
# paper's. More of them gain nothing (docs/evidence/weighting.md).
STEEPNESSES = (0.0, 2.0)
# Known answers of held-out examples can choose among more (crowdwise fit --choose-by-truth).
STEEPNESSES_BY_TRUTH = (0.0, 1.0, 2.0, 3.0, 5.0)

# --- What reports call things (reporting/, runs/_check). ---
# Confidence below which a consensus is called unsure, and expected gain, in bits, below which no check is worth it.
UNSURE, LITTLE_GAIN = 0.8, 0.02
# Known answers from which on they measure how correlated errors are, and how good an annotator is.
ENOUGH_TRUTHS = 20
# Examples in common from which on the kappa of two annotators is shown.
ENOUGH_SHARED = 10
# From this part of the votes on, errors are called mostly independent.
MOSTLY_INDEPENDENT = 0.8
# A class given on a smaller share of the examples, or of an even share of the labels, may be a slip.
RARE_ON_EXAMPLES, RARE_AMONG_LABELS = 0.05, 0.01
# Krippendorff's alpha from which on annotators agree so; he himself asks for .667, better .8.
AGREEMENT = ((0.8, "closely"), (0.667, "fairly well"), (0.4, "moderately"), (0.2, "weakly"), (0.0, "little"))

# --- What is shown at most, so that the page of a million examples stays small (reporting/, results/compare). ---
# Letters of a name and of a text.
NAME_LENGTH, TEXT_LENGTH = 80, 500
# Names in a sentence; entries of a short list, or pictures side by side; annotators in a chart; rows of a list.
NAMED, FEW, MOST_IN_CHART, MOST_ROWS = 3, 6, 12, 60
# Annotators and examples in their tables; classes of a confusion matrix; points and columns of a picture.
MOST_ANNOTATORS, MOST_EXAMPLES, MOST_CLASSES, MOST_POINTS, N_BINS = 1000, 5000, 8, 300, 20
