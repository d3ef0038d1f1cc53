//! Reads the interface's source, `src/ffi/c.rs` and `src/ffi/fortran.rs`: parts, documentation, constants, functions.
//!
//! Not a Rust parser. It knows the few shapes in which those files are written, tables of entries among them, and stops with a
//! message at anything else.

/// One item of the source, in its order.
pub enum Item {
    /// `// # Title`
    Part(String),
    /// `pub const NAME: …`
    Constant {
        /// Its name.
        name: String,
        /// What it means.
        doc: Doc,
    },
    /// `pub extern "C" fn name(…) -> …`, or `pub unsafe …`
    Function(Function),
}

/// A function of the interface.
pub struct Function {
    /// Its name, which is its symbol.
    pub name: String,
    /// Names and Rust types of the parameters.
    pub parameters: Vec<(String, String)>,
    /// The Rust type of what it returns, if it returns something.
    pub result: Option<String>,
    /// What it does.
    pub doc: Doc,
}

/// A documentation comment, taken apart.
#[derive(Default)]
pub struct Doc {
    /// The text before the parameters; an empty string between two paragraphs.
    pub text: Vec<String>,
    /// Names and descriptions of the parameters.
    pub parameters: Vec<(String, String)>,
    /// After `Returns:`
    pub returns: Option<String>,
    /// After `Source:`
    pub source: Option<String>,
}

impl Doc {
    /// Takes the lines of a comment apart.
    pub fn read(lines: &[String]) -> Doc {
        enum Into {
            Text,
            Parameter,
            Returns,
            Source,
        }
        let (mut doc, mut into) = (Doc::default(), Into::Text);
        for line in lines {
            let line = line.trim();
            if line.is_empty() {
                if matches!(into, Into::Text) && doc.text.last().is_some_and(|last| !last.is_empty()) {
                    doc.text.push(String::new());
                }
            } else if let Some((name, text)) = line.strip_prefix("* ").and_then(|item| item.split_once(": ")) {
                doc.parameters.push((name.to_owned(), text.to_owned()));
                into = Into::Parameter;
            } else if let Some(text) = line.strip_prefix("Returns: ") {
                doc.returns = Some(text.to_owned());
                into = Into::Returns;
            } else if let Some(text) = line.strip_prefix("Source: ") {
                doc.source = Some(text.to_owned());
                into = Into::Source;
            } else {
                let to = match into {
                    Into::Text => {
                        doc.text.push(line.to_owned());
                        continue;
                    }
                    Into::Parameter => doc.parameters.last_mut().map(|(_, text)| text),
                    Into::Returns => doc.returns.as_mut(),
                    Into::Source => doc.source.as_mut(),
                };
                if let Some(to) = to {
                    to.push(' ');
                    to.push_str(line);
                }
            }
        }
        while doc.text.last().is_some_and(|last| last.is_empty()) {
            doc.text.pop();
        }
        doc
    }

    /// The text as one line for each paragraph.
    pub fn paragraphs(&self) -> Vec<String> {
        self.text.split(|line| line.is_empty()).map(|lines| lines.join(" ")).collect()
    }
}

/// What stands behind the beginning of a function of C, one that asks something of its caller or not.
fn of_c(line: &str) -> Option<&str> {
    line.trim_start_matches("unsafe ").strip_prefix("extern \"C\" fn ")
}

/// The items of one source file.
pub fn read(source: &str) -> Vec<Item> {
    let (mut items, mut comment) = (Vec::new(), Vec::new());
    let mut signature = String::new(); // of the functions that a table makes
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let (inner, entry) = (line.strip_prefix("    ").unwrap_or(line), line.starts_with("    "));
        if let Some(title) = inner.strip_prefix("// # ") {
            items.push(Item::Part(title.to_owned()));
        } else if let Some(text) = inner.strip_prefix("///") {
            comment.push(text.to_owned());
        } else if let Some(rest) = line.strip_prefix("pub const ") {
            let name = rest.split(':').next().unwrap_or(rest).to_owned();
            items.push(Item::Constant { name, doc: Doc::read(&comment) });
            comment.clear();
        } else if let Some(rest) = line.strip_prefix("pub ").and_then(of_c) {
            let mut head = rest.to_owned();
            while !head.ends_with('{') {
                head.push_str(lines.next().expect("the head of a function ends with a brace").trim());
                if head.ends_with(',') {
                    head.push(' ');
                }
            }
            items.push(Item::Function(function(&head, Doc::read(&comment))));
            comment.clear();
        } else if let Some((_, rest)) = line.split_once("unsafe extern \"C\" fn $name(") {
            signature = rest.to_owned();
        } else if let Some(rest) = inner.trim_start_matches("unsafe ").strip_prefix("fn fmpl_").filter(|_| entry) {
            let mut head = format!("fmpl_{rest}");
            while !head.contains(')') {
                head = format!("{head} {}", lines.next().expect("the parameters of an entry end").trim());
            }
            let declared = head.split(')').next().unwrap_or_default().replace("( ", "(");
            let declared = format!("{}) -> c_int", declared.trim_end_matches(", "));
            items.push(Item::Function(function(&declared, Doc::read(&comment))));
            comment.clear();
        } else if entry && (inner.starts_with("fmpl_") || inner.starts_with("acp_")) {
            let above = match comment.pop_if(|line| line.trim() == "Parameters: as above.").and(items.last()) {
                Some(Item::Function(function)) => function.doc.parameters.clone(),
                _ => Vec::new(),
            };
            comment.extend(above.iter().map(|(name, text)| format!(" * {name}: {text}")));
            items.extend(entries(inner.split(" = ").next().unwrap_or_default(), &signature, &comment));
            comment.clear();
        } else if !line.starts_with("#[") {
            comment.clear();
        }
    }
    items
}

/// The functions of an entry in a table: `name, name8(argument: kind, …)`, or a name alone, whose arguments are the table's. Without
/// a comment it is as the C function of its name.
fn entries(head: &str, signature: &str, comment: &[String]) -> Vec<Item> {
    let (names, parameters) = match head.split_once('(') {
        Some((names, ")")) => (names, "ier: Out)".to_owned()),
        Some((names, parameters)) => (names, parameters.replace(')', ", ier: Out)")),
        None => (head, signature.to_owned()),
    };
    let first = names.split(", ").next().unwrap_or_default();
    let same = [format!(" As [`c::{}`].", first.trim_end_matches('_'))];
    let comment = if comment.is_empty() { &same } else { comment };
    let form = |(name, bytes): (&str, &str)| {
        let parameters =
            parameters.replace(": Size", &format!(": In{bytes}")).replace(": Length", &format!(": Out{bytes}"));
        Item::Function(function(&format!("{name}({parameters}"), Doc::read(comment)))
    };
    names.split(", ").zip(["", "8"]).map(form).collect()
}

/// The documentation that stands before the line that begins with `before`, indented or not.
pub fn doc_before(source: &str, before: &str) -> Doc {
    let mut comment = Vec::new();
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            comment.push(text.to_owned());
        } else if line.starts_with(before) {
            assert!(!comment.is_empty(), "`{before}` has no documentation");
            return Doc::read(&comment);
        } else if !line.starts_with("#[") {
            comment.clear();
        }
    }
    panic!("the source has no line that begins with `{before}`");
}

fn function(head: &str, doc: Doc) -> Function {
    let (name, rest) = head.split_once('(').expect("parameters");
    let (parameters, rest) = rest.rsplit_once(')').expect("end of the parameters");
    let result = rest.trim().trim_end_matches('{').trim().strip_prefix("-> ").map(|kind| kind.to_owned());
    let parameters: Vec<(String, String)> = parameters
        .split(',')
        .map(str::trim)
        .filter(|parameter| !parameter.is_empty())
        .map(|parameter| parameter.split_once(": ").expect("a parameter is `name: type`"))
        // A variable of the caller's is a pointer in C.
        .map(|(name, kind)| match kind.strip_prefix("Out<").and_then(|kind| kind.strip_suffix('>')) {
            Some(kind) => (name.to_owned(), format!("*mut {kind}")),
            None => (name.to_owned(), kind.to_owned()),
        })
        .collect();
    let described: Vec<&String> = doc.parameters.iter().map(|(name, _)| name).collect();
    if !doc.parameters.is_empty() {
        let there: Vec<&String> = parameters.iter().map(|(name, _)| name).collect();
        assert_eq!(described, there, "{name}: the parameters that are described, and those that there are");
    }
    Function { name: name.to_owned(), parameters, result, doc }
}
