//! What the comments of a log say about the machine.

/// The header comments of a log that a simulation needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    comments: Vec<String>,
}

impl Header {
    /// Notes a comment line; its text without the line end, the leading `;` included.
    pub fn push(&mut self, comment: &str) {
        self.comments.push(comment.to_owned());
    }

    /// The comment lines, as they stand in the log, without line ends.
    pub fn comments(&self) -> &[String] {
        &self.comments
    }

    /// The value of the first `; Name: value` line, blanks trimmed; the case of the name does not matter.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.comments.iter().find_map(|comment| {
            let (key, value) = comment.trim_start().trim_start_matches(';').split_once(':')?;
            (key.trim().eq_ignore_ascii_case(name)).then(|| value.trim())
        })
    }

    /// The machine's processors: `MaxProcs`, else the leading integer of `MaxNodes`.
    ///
    /// `338 (batch partition; 512 total)` is a real value of both.
    pub fn procs(&self) -> Option<u32> {
        let positive = |name| self.value(name).and_then(leading_integer).filter(|&procs| procs > 0);
        positive("MaxProcs").or_else(|| positive("MaxNodes"))
    }

    /// `UnixStartTime`: the instant of the log's second 0, in seconds of the Unix epoch.
    pub fn unix_start(&self) -> Option<i64> {
        self.value("UnixStartTime").and_then(|value| value.parse().ok())
    }

    /// `TimeZone`: seconds east of Greenwich, without summer time.
    pub fn time_zone(&self) -> Option<i64> {
        let offset = self.value("TimeZone").and_then(|value| value.parse().ok())?;
        // No zone is a day away from another; beyond that it is damage.
        (-86_400..=86_400).contains(&offset).then_some(offset)
    }
}

fn leading_integer(value: &str) -> Option<u32> {
    let digits = value.find(|c: char| !c.is_ascii_digit()).map_or(value, |end| &value[..end]);
    // `1,024` is not 1: better to ask than to guess.
    let grouped = value[digits.len()..]
        .strip_prefix(',')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if grouped { None } else { digits.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> Header {
        Header { comments: text.lines().map(str::to_owned).collect() }
    }

    #[test]
    fn machine_size_as_real_logs_give_it() {
        assert_eq!(header("; MaxNodes: 338 (batch partition; 512 total)").procs(), Some(338));
        assert_eq!(header("; MaxNodes: 12\n; MaxProcs: 100").procs(), Some(100));
        assert_eq!(header("; MaxProcs: -1\n; MaxNodes: 12").procs(), Some(12));
        assert_eq!(header(";maxprocs:7").procs(), Some(7));
        assert_eq!(header("  ; MaxProcs: 7").procs(), Some(7));
        assert_eq!(header("; MaxProcs: 99999999999").procs(), None);
        assert_eq!(header("; MaxProcs: 1,024").procs(), None);
        assert_eq!(header("; Note: nothing").procs(), None);
    }
}
