//! Reading a tuning file. What cannot be understood makes all of it void: half a table is none.

use std::fmt;

use super::*;

/// Why a file is no tuning file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The line, from 1; 0: the file as a whole.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.what),
            n => write!(f, "line {n}: {}", self.what),
        }
    }
}

impl Rows {
    /// Reads a file's text.
    pub fn read(text: &str) -> Result<Rows, Damage> {
        let mut rows = Rows::default();
        let mut begun = false;
        let mut last = 0;
        for (number, line) in text.lines().enumerate() {
            let wrong = |what: String| Damage { line: number + 1, what };
            let line = line.split('#').next().unwrap_or_default().trim();
            last = number + 1;
            if line.is_empty() {
                continue;
            }
            if !begun {
                begun = line == FORMAT;
                if !begun {
                    return Err(wrong(format!("the first line must be \"{FORMAT}\"")));
                }
            } else if let Some(heading) = line.strip_prefix('[') {
                let inside = heading.strip_suffix(']').ok_or_else(|| wrong("no ] at the end".into()))?;
                rows.sections.push(Section {
                    heading: inside.trim().to_owned(),
                    conditions: conditions(inside).map_err(wrong)?,
                    lines: Vec::new(),
                });
            } else {
                let section = rows.sections.last_mut().ok_or_else(|| wrong("no [section] before it".into()))?;
                let line = number_of(line, section).map_err(wrong)?;
                section.lines.push(line);
            }
        }
        match rows.sections.last() {
            None => Err(Damage { line: 0, what: "there are no sections in it".into() }),
            // A file that was cut off within a number would be read with another one: the last line of each must be a whole one.
            Some(_) if !text.ends_with('\n') => Err(Damage { line: last, what: "the file ends within a line".into() }),
            Some(_) => Ok(rows),
        }
    }
}

fn conditions(inside: &str) -> Result<Vec<Condition>, String> {
    let mut all = Vec::new();
    for text in inside.split(',').map(str::trim).filter(|text| *text != "any") {
        let (name, value) = text.split_once(' ').unwrap_or((text, ""));
        let value = value.trim();
        let switch = match value {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        };
        all.push(
            match name {
                "vendor" if !value.is_empty() => Some(Condition::Vendor(value.to_owned())),
                "family" => value.parse().ok().map(Condition::Family),
                "model" => value.parse().ok().map(Condition::Model),
                "distance" => Distance::named(value).map(Condition::Distance),
                "members" => range(value).map(|(least, most)| Condition::Members(least, most)),
                "crowded" => switch.map(Condition::Crowded),
                "take_over" => switch.map(Condition::TakeOver),
                "network" if !value.is_empty() => Some(Condition::Network(value.to_owned())),
                _ => None,
            }
            .ok_or_else(|| {
                format!(
                    "\"{text}\" is no condition: any | vendor NAME | family N | model N | distance shared|apart | \
                     members N or N-N or N- | crowded on|off | take_over on|off | network NAME"
                )
            })?,
        );
    }
    Ok(all)
}

fn range(text: &str) -> Option<(usize, usize)> {
    match text.split_once('-') {
        None => text.parse().ok().map(|n| (n, n)),
        Some((least, "")) => least.parse().ok().map(|n| (n, NEVER)),
        Some((least, most)) => Some((least.parse().ok()?, most.parse().ok()?)).filter(|(a, b)| a <= b),
    }
}

fn number_of(line: &str, section: &Section) -> Result<(usize, usize), String> {
    let (name, value) = line.split_once('=').ok_or("neither a [section] nor NAME = VALUE")?;
    let (name, value) = (name.trim(), value.trim());
    let key = KEYS.iter().position(|k| k.name == name).ok_or_else(|| format!("there is no number \"{name}\""))?;
    let Key { of, kind, values, .. } = KEYS[key];
    if !section.conditions.iter().all(|c| c.fits(of)) {
        return Err(match of {
            Of::Process => format!("{name} holds for all that a process does: by the processor only"),
            Of::Pair => format!("{name} is of a pair of ranks, which has no members"),
            Of::Team => format!("{name} must be the same for all who call together: not by the distance of two"),
        });
    }
    let number = kind.read(value).ok_or_else(|| format!("{name} = {value}: possible values: {values}"))?;
    Ok((key, number))
}
