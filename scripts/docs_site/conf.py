# How Sphinx makes the site of scripts/docs_site.sh from the Markdown that GitHub shows, too. Each page
# needs a place in NAVIGATION, or the build fails. A source file to which a page links becomes a page.
import pathlib

from docutils import nodes
from pygments.lexers.javascript import JavascriptLexer
from sphinx import addnodes

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAVIGATION = {
    "Begin": ["docs/tutorial", "docs/testing", "examples/README", "docs/comparison"],
    "Handlers": ["docs/outbox", "docs/outside", "docs/gate", "docs/configuration"],
    "Operating": ["docs/operating", "docs/runbooks", "docs/failures", "docs/console"],
    "How it works": ["docs/guarantees", "docs/way-of-a-message", "docs/performance", "docs/reliability"],
    "hapax itself": ["CHANGELOG", "CONTRIBUTING", "SECURITY", "docs/lab/README"],
}
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".json": "js", ".yaml": "yaml", ".yml": "yaml", ".sql": "sql", ".sh": "sh"}

project = html_title = "hapax"
root_doc = "README"
extensions = ["myst_parser"]
include_patterns = ["*.md", "docs/**.md", "examples/README.md"]
myst_heading_anchors = 4  # links name headings as GitHub does
html_theme = "alabaster"
html_theme_options = {"fixed_sidebar": True, "page_width": "1180px", "sidebar_width": "250px", "show_powered_by": False,
                      "font_family": "system-ui, sans-serif", "head_font_family": "system-ui, sans-serif"}
html_static_path = ["static"]
pygments_style = "friendly"
html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html"]}
html_search_scorer = str(ROOT / "scripts/docs_site/scorer.js")
html_copy_source = html_show_copyright = False
suppress_warnings = ["misc.highlighting_failure"]  # of configuration with … in it

linked = set()  # the source files and folders


def add_navigation(_, name, text):
    trees = NAVIGATION if name == root_doc else {}
    if name == "docs/lab/README":
        trees = {"Notes": sorted(f"docs/lab/{page.stem}" for page in (ROOT / "docs/lab").glob("2*.md"))}
    for caption, pages in trees.items():
        text[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(f"/{page}" for page in pages) + "\n```\n"


def link_sources(app, tree):
    for node in [*tree.findall(addnodes.download_reference), *tree.findall(addnodes.pending_xref)]:
        path = (ROOT / app.env.docname).parent.joinpath(node["reftarget"]).resolve()
        if path.is_dir() or isinstance(node, addnodes.download_reference):
            linked.add(path)
            uri = app.builder.get_relative_uri(app.env.docname, path.relative_to(ROOT).as_posix())
            node.replace_self(nodes.reference("", "", *node.children, internal=True, refuri=uri))


def source_pages(app):
    for path in sorted(linked):
        files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
        body = f"<h1>{path.relative_to(ROOT)}</h1>"
        for file in files:
            if path.is_dir():
                body += f"<h2>{file.relative_to(path)}</h2>"
            body += app.builder.highlighter.highlight_block(file.read_text(), LANGUAGES.get(file.suffix, "text"))
        yield path.relative_to(ROOT).as_posix(), {"title": path.name, "body": body}, "page.html"
    yield "index", {"title": project, "metatags": '<meta http-equiv="refresh" content="0; url=README.html">'}, "page.html"


def setup(app):
    app.add_lexer("jsonc", JavascriptLexer)
    app.connect("source-read", add_navigation)
    app.connect("doctree-read", link_sources, priority=100)  # before Sphinx collects them as downloads
    app.connect("html-collect-pages", source_pages)
