//! A request for devices as its user writes it.

use std::fmt;
use std::str::FromStr;

use super::DeviceGroup;

/// A request for devices: `2`, `a100`, `a100:2`, `a100|h100:2`, perhaps with memory for each, or a share of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceRequest {
    /// The permitted types. Empty: any type.
    pub types: Vec<String>,
    /// The number of devices, at least 1. A share is of one device.
    pub count: u32,
    /// The memory, in kB: the least of each device, or the amount of the share.
    pub memory: Option<u64>,
    /// Whether only the memory is requested, of a device that other jobs may share.
    pub share: bool,
}

/// A request for devices that is wrong, or that no machine with this table can meet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The text is no request.
    #[error("GPUs {text:?}: write a count, a type, or both, such as 2, a100:2 or a100|h100:2")]
    Syntax {
        /// The text.
        text: String,
    },
    /// The count is zero or too large.
    #[error("GPUs {text:?}: the count must be 1 to {most}", most = DeviceGroup::MOST)]
    Count {
        /// The text.
        text: String,
    },
    /// No class has this type.
    #[error("no GPU of type {name:?}; the types are {}", types.join(", "))]
    UnknownType {
        /// The requested type.
        name: String,
        /// The types of the machine.
        types: Vec<String>,
    },
    /// No class of the requested types has enough memory.
    #[error("no GPU has {memory} kB of memory; the most is {most} kB")]
    Memory {
        /// The requested memory, in kB.
        memory: u64,
        /// The largest memory of a device of the requested types, in kB.
        most: u64,
    },
    /// No device of the requested types may be shared.
    #[error("no GPU of these types is given in shares; request whole GPUs")]
    NoShares,
    /// A share is of one device.
    #[error("a share is of one GPU, not of {count}; request whole GPUs, or a count of 1")]
    ShareOfSeveral {
        /// The requested count.
        count: u32,
    },
    /// The table has too many classes.
    #[error("{classes} classes of GPUs; there are at most 64, by type, memory, parts and sharing")]
    TooManyClasses {
        /// Their number.
        classes: usize,
    },
}

impl DeviceRequest {
    /// Returns a request for a number of devices of any type.
    pub const fn any(count: u32) -> DeviceRequest {
        DeviceRequest { types: Vec::new(), count, memory: None, share: false }
    }

    /// Returns a request for this memory, in kB, on a device of any type that other jobs may share.
    pub const fn share(memory: u64) -> DeviceRequest {
        DeviceRequest { types: Vec::new(), count: 1, memory: Some(memory), share: true }
    }

    /// Returns the same request with at least this memory on each device, in kB.
    #[must_use]
    pub fn with_memory(self, memory: u64) -> DeviceRequest {
        DeviceRequest { memory: Some(memory), ..self }
    }

    /// Returns the same request for one of these types, separated by `|`.
    ///
    /// # Errors
    /// [`DeviceError::Syntax`] if one is not a type.
    pub fn with_types(self, text: &str) -> Result<DeviceRequest, DeviceError> {
        let syntax = || DeviceError::Syntax { text: text.into() };
        let types = text.split('|').map(|name| is_type(name).then(|| name.to_owned()).ok_or_else(syntax));
        Ok(DeviceRequest { types: types.collect::<Result<_, _>>()?, ..self })
    }
}

impl FromStr for DeviceRequest {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<DeviceRequest, DeviceError> {
        let count = |count: &str| {
            let number = count.parse().ok().filter(|count| (1..=DeviceGroup::MOST).contains(count));
            number.ok_or_else(|| DeviceError::Count { text: text.into() })
        };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let syntax = |_| DeviceError::Syntax { text: text.into() };
        match text.rsplit_once(':') {
            None if is_number(text) => Ok(DeviceRequest::any(count(text)?)),
            None => DeviceRequest::any(1).with_types(text).map_err(syntax),
            Some((types, number)) if is_number(number) => {
                DeviceRequest::any(count(number)?).with_types(types).map_err(syntax)
            }
            Some(_) => Err(DeviceError::Syntax { text: text.into() }),
        }
    }
}

impl fmt::Display for DeviceRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.types[..], self.count) {
            ([], count) => write!(f, "{count}"),
            (types, count) => write!(f, "{}:{count}", types.join("|")),
        }
    }
}

/// Returns whether a text can be a type: letters, digits, `.`, `_` and `-`, and not only digits.
pub(super) fn is_type(text: &str) -> bool {
    let permitted = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    text.bytes().all(permitted) && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_as_text() {
        let parsed = |text: &str| text.parse::<DeviceRequest>().map(|request| request.to_string());
        let fine =
            [("2", "2"), ("a100", "a100:1"), ("a100:2", "a100:2"), ("a100|1g.10gb:64", "a100|1g.10gb:64")];
        for (text, expect) in fine {
            assert_eq!(parsed(text).as_deref(), Ok(expect));
        }
        for text in ["", ":2", "a100:", "a100||h100", "a b:1", "a100:2:x", "|", "a:b"] {
            assert_eq!(parsed(text), Err(DeviceError::Syntax { text: text.into() }));
        }
        for text in ["0", "65", "a100:0", "a100:99999999999"] {
            assert_eq!(parsed(text), Err(DeviceError::Count { text: text.into() }));
        }
    }
}
