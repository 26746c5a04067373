"""How scripts/docs builds the site: pages in Markdown, the API from docstrings, the gallery from examples/."""

import os
import re

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy is imported: examples are small

import warnings

import matplotlib as mpl

import crowdwise

mpl.use("agg")
warnings.filterwarnings("error", module=r"crowdwise\.")

project = "crowdwise"
author = "the crowdwise developers"
copyright = f"{author}; BSD 3-Clause licence"
version = release = crowdwise.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "gallery/*.ipynb", "gallery/*.json", "gallery/*.py"]
templates_path = ["_templates"]
default_role = "py:obj"
add_module_names = False
toc_object_entries_show_parents = "hide"

myst_enable_extensions = ["colon_fence", "html_image"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings have them in words
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_preprocess_types = False

copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "sphinx_gallery.sorting.FileNameSortKey",
    "doc_module": ("crowdwise",),
    "backreferences_dir": None,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "image_srcset": ["2x"],
    "thumbnail_size": (480, 300),
    "matplotlib_animations": False,
    "reset_modules": ("matplotlib",),
}

# Pages that need the space of the list of headings.
WIDE_TABLES = [f"evidence/{page}" for page in ("models", "data", "weighting", "reproduction")]

html_theme = "pydata_sphinx_theme"
html_title = "crowdwise"
html_static_path = ["_static"]
html_css_files = ["crowdwise.css"]
html_show_sourcelink = False
html_show_sphinx = False
# Nothing is fetched from anywhere: no fonts, no icons of other sites, no search service.
html_theme_options = {
    "logo": {"text": "crowdwise"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "api": [], **{page: [] for page in WIDE_TABLES}},
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_nav_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
html_sidebars = {"first-steps": [], "index": []}


def escape_trailing_underscores(app, what, name, obj, options, lines):
    """Types such as "ndarray of shape (n_features_in_,)" are no links, which is what RST takes a trailing _ for."""
    for i, line in enumerate(lines):
        if ":vartype" in line or ":type" in line:
            lines[i] = re.sub(r"(?<=\w)_(?=[,)])", r"\\_", line)


def examples_first(app, what, name, obj, options, lines):
    """The example stands above the parameters: most readers need no more."""
    titles = [i for i in range(len(lines) - 1) if lines[i].strip() and re.fullmatch(r"-{3,}", lines[i + 1].strip())]
    starts = {lines[i].strip(): i for i in titles}
    if "Examples" in starts and titles[0] < starts["Examples"]:
        begin = starts["Examples"]
        end = next((i for i in titles if i > begin), len(lines))
        example = [*lines[begin:end], ""]
        del lines[begin:end]
        lines[titles[0] : titles[0]] = example


def setup(app):
    app.connect("autodoc-process-docstring", examples_first, priority=100)  # before napoleon
    app.connect("autodoc-process-docstring", escape_trailing_underscores, priority=900)  # after napoleon
