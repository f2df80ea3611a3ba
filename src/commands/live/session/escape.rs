//! The keys that detach a terminal from its job.

/// The state of the keys: those since the last end of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing.
    #[default]
    LineStart,
    /// Only `~`, which was not passed on.
    Tilde,
    /// Other keys.
    Other,
}

/// A filter of keys that finds `~.` and `~d` at the begin of a line. `~~` stands for `~`, as in ssh(1).
///
/// ssh itself takes `~.`, so there is another sequence for a terminal within ssh.
#[derive(Debug, Default)]
pub(super) struct EscapeKeys(State);

impl EscapeKeys {
    /// Returns the keys for the job, and whether the client detaches after them.
    pub(super) fn filter(&mut self, keys: &[u8]) -> (Vec<u8>, bool) {
        let mut passed = Vec::with_capacity(keys.len() + 1);
        for &key in keys {
            match (self.0, key) {
                (State::LineStart, b'~') => {
                    self.0 = State::Tilde;
                    continue;
                }
                (State::Tilde, b'.' | b'd') => return (passed, true),
                (State::Tilde, b'~') | (State::LineStart | State::Other, _) => {}
                (State::Tilde, _) => passed.push(b'~'),
            }
            passed.push(key);
            self.0 = if matches!(key, b'\r' | b'\n') { State::LineStart } else { State::Other };
        }
        (passed, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks which keys reach the job, also one by one.
    #[track_caller]
    fn check(keys: &str, passed: &str, detaches: bool) {
        let whole = EscapeKeys::default().filter(keys.as_bytes());
        assert_eq!(whole, (passed.as_bytes().to_vec(), detaches), "{keys:?}");
        let (mut escape, mut single) = (EscapeKeys::default(), (vec![], false));
        for key in keys.as_bytes() {
            let (some, is_last) = escape.filter(&[*key]);
            single.0.extend(some);
            single.1 |= is_last;
            if is_last {
                break;
            }
        }
        assert_eq!(single, whole, "{keys:?}");
    }

    #[test]
    fn keys() {
        check("ls\r~.", "ls\r", true);
        check("ls\r~d", "ls\r", true);
        check("~.more", "", true);
        check("ls ~.\r", "ls ~.\r", false);
        check("\r~~.\r", "\r~.\r", false);
        check("\r~a\r~.", "\r~a\r", true);
        check("\r~\r~d", "\r~\r", true);
        check("\r~", "\r", false);
        check("\u{3}~.", "\u{3}~.", false);
    }
}
