//! Lossless encoding of operating system strings in JSON: text if it is UTF-8, else bytes.
//!
//! File names need not be UTF-8, and a job receives exactly the given environment and arguments.
//! Used as `#[serde(with = "crate::lossless")]`.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The JSON form of a string.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum EncodedString {
    Text(String),
    Bytes(Vec<u8>),
}

/// A value with a lossless JSON form.
pub(crate) trait Lossless: Sized {
    type Encoded: Serialize + DeserializeOwned;

    fn encode(&self) -> Self::Encoded;

    fn decode(encoded: Self::Encoded) -> Self;
}

impl Lossless for OsString {
    type Encoded = EncodedString;

    fn encode(&self) -> EncodedString {
        match self.to_str() {
            Some(text) => EncodedString::Text(text.to_owned()),
            None => EncodedString::Bytes(self.as_bytes().to_owned()),
        }
    }

    fn decode(encoded: EncodedString) -> OsString {
        match encoded {
            EncodedString::Text(text) => text.into(),
            EncodedString::Bytes(bytes) => OsString::from_vec(bytes),
        }
    }
}

impl Lossless for PathBuf {
    type Encoded = EncodedString;

    fn encode(&self) -> EncodedString {
        self.as_os_str().to_owned().encode()
    }

    fn decode(encoded: EncodedString) -> PathBuf {
        OsString::decode(encoded).into()
    }
}

impl<T: Lossless> Lossless for Vec<T> {
    type Encoded = Vec<T::Encoded>;

    fn encode(&self) -> Vec<T::Encoded> {
        self.iter().map(T::encode).collect()
    }

    fn decode(encoded: Vec<T::Encoded>) -> Vec<T> {
        encoded.into_iter().map(T::decode).collect()
    }
}

impl<T: Lossless> Lossless for Option<T> {
    type Encoded = Option<T::Encoded>;

    fn encode(&self) -> Self::Encoded {
        self.as_ref().map(T::encode)
    }

    fn decode(encoded: Self::Encoded) -> Option<T> {
        encoded.map(T::decode)
    }
}

impl<T: Lossless, U: Lossless> Lossless for (T, U) {
    type Encoded = (T::Encoded, U::Encoded);

    fn encode(&self) -> Self::Encoded {
        (self.0.encode(), self.1.encode())
    }

    fn decode(encoded: Self::Encoded) -> (T, U) {
        (T::decode(encoded.0), U::decode(encoded.1))
    }
}

pub(crate) fn serialize<T: Lossless, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.encode().serialize(serializer)
}

pub(crate) fn deserialize<'de, T: Lossless, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::Encoded::deserialize(deserializer).map(T::decode)
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
        let encoded = serde_json::to_string(&sample).unwrap();
        assert_eq!(encoded, r#"{"env":[["A","b"],["C",[255,47]]]}"#);
        assert_eq!(serde_json::from_str::<Sample>(&encoded).unwrap(), sample);
    }
}
