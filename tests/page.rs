//! The page of `fmpl bench --html`: it is well formed, has all that was measured, and needs nothing but itself.

use std::process::{Command, Stdio};

const SIZES: [&str; 3] = ["8 B", "1 KB", "64 KB"];

/// The page of two benchmarks.
fn page() -> String {
    let file = std::env::temp_dir().join(format!("fmpl-page-{}.html", std::process::id()));
    let mut bench = Command::new("timeout");
    bench.args(["-k", "5", "120", env!("CARGO_BIN_EXE_fmpl"), "bench", "pingpong", "echo", "--sizes", "8,1k,64k"]);
    bench.args(["--rounds", "1", "--blocks", "2", "--iterations", "50", "--quiet", "--html"]).arg(&file);
    let output = bench.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let page = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    page
}

/// Elements that have no end.
const VOID: [&str; 2] = ["meta", "!DOCTYPE"];

/// That each element which begins also ends, inside the one that it began in; the names of all of them, in order.
fn elements(page: &str) -> Vec<&str> {
    let (mut all, mut open) = (Vec::new(), Vec::new());
    let mut rest = page;
    while let Some((text, tag)) = rest.split_once('<') {
        assert!(!text.contains('>') || open.last() == Some(&"style"), "a stray '>' in {text:?}");
        let (tag, behind) = tag.split_once('>').expect("a tag that ends");
        let name = tag.split(|c: char| c.is_whitespace() || c == '/').find(|n| !n.is_empty()).expect("a name");
        let quotes = tag.matches('"').count();
        assert!(quotes.is_multiple_of(2), "<{tag}>");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "ends here: {:?}", &behind[..behind.len().min(200)]);
        } else {
            all.push(name);
            if !tag.ends_with('/') && !VOID.contains(&name) {
                open.push(name);
            }
        }
        rest = behind;
    }
    assert!(open.is_empty(), "without an end: {open:?}");
    all
}

#[test]
fn a_page_has_pictures_tables_and_blocks_and_needs_nothing_else() {
    let mut page = page();
    for _ in 0..5 {
        if page.matches("<svg").count() == 2 {
            break;
        }
        // On a crowded machine all blocks may have been set aside.
        page = self::page();
    }
    let elements = elements(&page);
    for once in ["html", "head", "title", "body", "h1"] {
        assert_eq!(elements.iter().filter(|e| **e == once).count(), 1, "{once}");
    }

    let sections: Vec<&str> = page.split("<h2>").skip(1).collect();
    assert_eq!(sections.len(), 2);
    for (section, name) in sections.iter().zip(["pingpong", "echo"]) {
        assert!(section.starts_with(&format!("{name}</h2>")), "{section}");
        let (told, blocks) = section.split_once("<details>").unwrap();
        assert_eq!(told.matches("<svg").count(), 1, "a picture of {name}");
        assert!(told.contains("<polyline"), "a line in it");
        for size in SIZES {
            let row = format!("<tr><td>{size}</td><td>");
            let values: Vec<&str> = told.split(&row).skip(1).map(|r| r.split('<').next().unwrap()).collect();
            assert!(
                !values.is_empty() && values.iter().all(|v| v.parse().is_ok_and(|us: f64| us > 0.0)),
                "{size}: {values:?}"
            );
            let row = format!("<tr><td>{size}</td><td>fmpl</td><td>one-way, µs</td><td>");
            let values = blocks.split(&row).nth(1).unwrap().split('<').next().unwrap();
            assert_eq!(values.split(' ').filter(|v| v.parse::<f64>().is_ok()).count(), 2, "{size}: {values:?}");
        }
    }

    let alone = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for reference in ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link"] {
        assert!(!alone.contains(reference), "{reference}");
    }
}
