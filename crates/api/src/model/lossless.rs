//! The form of paths in JSON: text if they are UTF-8, else their bytes.
//!
//! Names of files need not be UTF-8, and a job keeps its folder whatever its name is.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path in JSON: text if it is UTF-8, else a list of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum PathText {
    /// UTF-8 text.
    Text(String),
    /// The bytes of any other path.
    #[schema(value_type = Vec<u32>)]
    Bytes(Vec<u8>),
}

impl From<&Path> for PathText {
    fn from(path: &Path) -> PathText {
        match path.to_str() {
            Some(text) => PathText::Text(text.to_owned()),
            None => PathText::Bytes(path.as_os_str().as_bytes().to_owned()),
        }
    }
}

impl From<PathText> for PathBuf {
    fn from(text: PathText) -> PathBuf {
        match text {
            PathText::Text(text) => text.into(),
            PathText::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }
    }
}

pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    PathText::from(path).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    PathText::deserialize(deserializer).map(PathBuf::from)
}

/// The same for a path that may be absent.
pub(crate) mod optional {
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::PathText;

    #[allow(clippy::ref_option, reason = "serde calls it so")]
    pub(crate) fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_deref().map(PathText::from).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<PathText>::deserialize(deserializer)?.map(PathBuf::from))
    }
}

#[cfg(test)]
mod tests {
    use crate::model::Submission;

    use super::*;

    #[test]
    fn every_path_comes_back() {
        let odd = || PathBuf::from(OsString::from_vec(b"/data/\xff\n".to_vec()));
        let submission = Submission { directory: odd(), output: Some(odd()), ..Submission::default() };
        let text = serde_json::to_string(&submission).unwrap();
        assert!(text.contains(r#""directory":[47,100,97,116,97,47,255,10]"#), "{text}");
        assert_eq!(serde_json::from_str::<Submission>(&text).unwrap(), submission);
        // As all versions have it.
        let plain =
            Submission { directory: "/data".into(), error: Some("e\u{e9}".into()), ..Submission::default() };
        let text = serde_json::to_string(&plain).unwrap();
        assert!(text.contains(r#""directory":"/data""#) && text.contains("\"error\":\"e\u{e9}\""), "{text}");
        assert_eq!(serde_json::from_str::<Submission>(&text).unwrap(), plain);
    }
}
