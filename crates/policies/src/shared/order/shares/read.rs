//! The written form of a tree of shares.

use std::str::FromStr;

use thiserror::Error;

use super::{Is, Member, Owner, ShareTree};

/// The reason why a text is no tree of shares.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("character {at}: expected {expected}")]
pub struct ShareTreeError {
    /// The position, from 1.
    at: usize,
    expected: &'static str,
}

impl FromStr for ShareTree {
    type Err = ShareTreeError;

    fn from_str(text: &str) -> Result<ShareTree, ShareTreeError> {
        let mut reader = Reader { text, at: 0 };
        let members = reader.list(0)?;
        if reader.peek().is_some() {
            return Err(reader.expected("a comma or the end"));
        }
        let tree = ShareTree::new(members);
        let mut owners: Vec<Owner> = tree.owners().collect();
        if owners.is_empty() {
            return Err(ShareTreeError { at: 1, expected: "a user or a group" });
        }
        owners.sort_unstable();
        if owners.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(ShareTreeError { at: 1, expected: "each user and group once" });
        }
        Ok(tree)
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// The deepest accounts.
    const DEPTH: usize = 64;

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Returns the next character that is no blank.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    /// Skips a character, if it is the next one.
    fn skip(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn expected(&self, expected: &'static str) -> ShareTreeError {
        ShareTreeError { at: self.text[..self.at].chars().count() + 1, expected }
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Member>, ShareTreeError> {
        if depth > Reader::DEPTH {
            return Err(self.expected("at most 64 accounts within each other"));
        }
        let mut members = vec![];
        // An account may have shares, but no users yet.
        if depth > 0 && self.peek() == Some(')') {
            return Ok(members);
        }
        loop {
            match self.member(depth)? {
                Member { shares: None, is: Is::Account(within) } => members.extend(within),
                member => members.push(member),
            }
            if !self.skip(',') {
                return Ok(members);
            }
        }
    }

    fn member(&mut self, depth: usize) -> Result<Member, ShareTreeError> {
        let shares = match self.peek() {
            Some('u' | 'g' | '(') => Some(1),
            Some('p') if self.rest().starts_with("parent") => {
                self.at += "parent".len();
                self.times()?;
                None
            }
            _ => {
                let shares = self.number("shares, a user such as u7, a group such as g7, or a bracket")?;
                self.times()?;
                Some(shares)
            }
        };
        let is = if self.skip('(') {
            let members = self.list(depth + 1)?;
            if !self.skip(')') {
                return Err(self.expected("a comma or a closing bracket"));
            }
            Is::Account(members)
        } else if self.skip('u') {
            Is::Owner(Owner::User(self.number("the number of a user")?))
        } else if self.skip('g') {
            Is::Owner(Owner::Group(self.number("the number of a group")?))
        } else {
            return Err(self.expected("a user such as u7, a group such as g7, or a bracket"));
        };
        Ok(Member { shares, is })
    }

    fn times(&mut self) -> Result<(), ShareTreeError> {
        if self.skip('*') { Ok(()) } else { Err(self.expected("*")) }
    }

    fn number(&mut self, expected: &'static str) -> Result<u32, ShareTreeError> {
        let digits: &str = self.rest().split(|found: char| !found.is_ascii_digit()).next().unwrap_or("");
        let number = digits.parse().map_err(|_| self.expected(expected))?;
        self.at += digits.len();
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, at: usize, expected: &str) {
        let error = text.parse::<ShareTree>().unwrap_err();
        assert_eq!((error.at, error.expected), (at, expected), "{text}");
    }

    #[test]
    fn a_tree_is_read_as_it_is_written() {
        for (text, written) in [
            ("u1", "1*u1"),
            ("30*(2*u1,parent*g7), 0 * (u3,())", "30*(2*u1, parent*g7), 0*(1*u3, 1*())"),
            // The members of an account without shares of its own are those of the account above.
            ("2*u1, parent*(3*u2, parent*(u3), 4*(u4))", "2*u1, 3*u2, 1*u3, 4*(1*u4)"),
        ] {
            let tree: ShareTree = text.parse().unwrap();
            assert_eq!(tree.to_string(), written);
            assert_eq!(tree.to_string().parse::<ShareTree>(), Ok(tree));
        }
        refused("", 1, "shares, a user such as u7, a group such as g7, or a bracket");
        refused("parent*()", 1, "a user or a group");
        refused("2*u1, 3*x", 9, "a user such as u7, a group such as g7, or a bracket");
        refused("2*(u1", 6, "a comma or a closing bracket");
        refused("2*u1)", 5, "a comma or the end");
        refused("2 u1", 3, "*");
        refused("u99999999999", 2, "the number of a user");
        refused("u1, 2*(g1, u1)", 1, "each user and group once");
        refused(&"(".repeat(100_000), 66, "at most 64 accounts within each other");
    }
}
