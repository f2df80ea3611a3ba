//! The lines of `scontrol -o show`: `Key=Value Key=Value ...`.

use crate::SlurmError;

/// A line of fields. A free text at its end may look like further fields, so the first value of a key counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    program: &'static str,
    line: &'a str,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(program: &'static str, line: &'a str) -> Fields<'a> {
        Fields { program, line }
    }

    /// Returns the value of a key; `None` if it is absent, or stands for none.
    pub(crate) fn get(self, key: &str) -> Option<&'a str> {
        let value = |field: &'a str| field.strip_prefix(key)?.strip_prefix('=');
        let value = self.line.split_ascii_whitespace().find_map(value)?;
        (!matches!(value, "(null)" | "N/A" | "n/a" | "None" | "NONE" | "")).then_some(value)
    }

    /// Returns the value of a key that each line has.
    pub(crate) fn required(self, key: &str) -> Result<&'a str, SlurmError> {
        self.get(key).ok_or_else(|| self.unreadable(format!("no {key}")))
    }

    /// Returns the number of a key that each line has.
    pub(crate) fn number(self, key: &str) -> Result<u64, SlurmError> {
        let text = self.required(key)?;
        text.parse().map_err(|_| self.unreadable(format!("{key} is no number")))
    }

    pub(crate) fn unreadable(self, problem: String) -> SlurmError {
        SlurmError::Unreadable {
            program: self.program.to_owned(),
            problem,
            line: self.line.chars().take(200).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_counts() {
        let fields =
            Fields::new("scontrol", "NodeName=n1 State=DOWN Gres=(null) CPUs=8 Reason=was State=IDLE CPUs=9");
        assert_eq!((fields.get("State"), fields.get("Gres"), fields.get("Stat")), (Some("DOWN"), None, None));
        assert_eq!(fields.number("CPUs").unwrap(), 8);
        let error = fields.number("State").unwrap_err().to_string();
        assert!(error.contains("State is no number"), "{error}");
        assert!(fields.number("Memory").unwrap_err().to_string().contains("no Memory"));
    }
}
