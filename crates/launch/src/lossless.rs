//! Strings of the system in JSON: text where it is text, else its bytes. A file name need not be UTF-8, and a job gets
//! exactly the environment and arguments that it was given.
//!
//! For `#[serde(with = "crate::lossless")]`.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A string as it is written.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Written {
    Text(String),
    Bytes(Vec<u8>),
}

/// What can be written without loss.
pub(crate) trait Lossless: Sized {
    type Written: Serialize + DeserializeOwned;

    fn write(&self) -> Self::Written;

    fn read(written: Self::Written) -> Self;
}

impl Lossless for OsString {
    type Written = Written;

    fn write(&self) -> Written {
        match self.to_str() {
            Some(text) => Written::Text(text.to_owned()),
            None => Written::Bytes(self.as_bytes().to_owned()),
        }
    }

    fn read(written: Written) -> OsString {
        match written {
            Written::Text(text) => text.into(),
            Written::Bytes(bytes) => OsString::from_vec(bytes),
        }
    }
}

impl Lossless for PathBuf {
    type Written = Written;

    fn write(&self) -> Written {
        self.as_os_str().to_owned().write()
    }

    fn read(written: Written) -> PathBuf {
        OsString::read(written).into()
    }
}

impl<T: Lossless> Lossless for Vec<T> {
    type Written = Vec<T::Written>;

    fn write(&self) -> Vec<T::Written> {
        self.iter().map(T::write).collect()
    }

    fn read(written: Vec<T::Written>) -> Vec<T> {
        written.into_iter().map(T::read).collect()
    }
}

impl<T: Lossless, U: Lossless> Lossless for (T, U) {
    type Written = (T::Written, U::Written);

    fn write(&self) -> Self::Written {
        (self.0.write(), self.1.write())
    }

    fn read(written: Self::Written) -> (T, U) {
        (T::read(written.0), U::read(written.1))
    }
}

pub(crate) fn serialize<T: Lossless, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.write().serialize(serializer)
}

pub(crate) fn deserialize<'de, T: Lossless, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::Written::deserialize(deserializer).map(T::read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Sample {
        #[serde(with = "crate::lossless")]
        env: Vec<(OsString, OsString)>,
    }

    #[test]
    fn text_is_text_and_bytes_come_back() {
        let env = vec![("A".into(), "b".into()), ("C".into(), OsString::from_vec(vec![0xff, 0x2f]))];
        let sample = Sample { env };
        let written = serde_json::to_string(&sample).unwrap();
        assert_eq!(written, r#"{"env":[["A","b"],["C",[255,47]]]}"#);
        assert_eq!(serde_json::from_str::<Sample>(&written).unwrap(), sample);
    }
}
