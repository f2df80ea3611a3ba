//! Secrets that permit requests.

use std::io;
use std::sync::{Mutex, PoisonError};

use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};

/// The most keys that are known at once. The oldest one is forgotten first.
const KEYS_MOST: usize = 64;

/// The secrets of a server: one token for the next visit, and the keys of earlier visits.
#[derive(Debug)]
pub(crate) struct Keys(Mutex<Known>);

#[derive(Debug)]
struct Known {
    token: String,
    /// The checksums of the keys, so that the time of a comparison depends on no key.
    keys: Vec<[u8; 32]>,
}

impl Keys {
    /// Returns new secrets.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub(crate) fn new() -> io::Result<Keys> {
        Ok(Keys(Mutex::new(Known { token: random()?, keys: vec![] })))
    }

    /// Returns the token of the next visit.
    pub(crate) fn token(&self) -> String {
        self.locked(|known| known.token.clone())
    }

    /// Returns a new key for the right token, which no other visit can use.
    ///
    /// # Errors
    /// If the system has no random bytes. The token is then used up.
    pub(crate) fn exchange(&self, token: &str) -> io::Result<Option<String>> {
        let (key, next) = (random()?, random()?);
        Ok(self.locked(|known| {
            if checksum(token.as_bytes()) != checksum(known.token.as_bytes()) {
                return None;
            }
            known.token = next;
            if known.keys.len() >= KEYS_MOST {
                known.keys.remove(0);
            }
            known.keys.push(checksum(key.as_bytes()));
            Some(key)
        }))
    }

    /// Returns whether a key was given to an earlier visit.
    pub(crate) fn knows(&self, key: &str) -> bool {
        let checksum = checksum(key.as_bytes());
        self.locked(|known| known.keys.contains(&checksum))
    }

    fn locked<T>(&self, with: impl FnOnce(&mut Known) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the checksum of a secret, so that the time of a comparison depends on no secret.
pub(crate) fn checksum(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

/// Returns 192 random bits as text.
fn random() -> io::Result<String> {
    let mut bytes = [0; 24];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_works_once() {
        let keys = Keys::new().unwrap();
        let token = keys.token();
        assert_eq!(keys.exchange("").unwrap(), None);
        let key = keys.exchange(&token).unwrap().unwrap();
        assert!(keys.knows(&key) && !keys.knows(&token) && !keys.knows(""));
        assert_eq!(keys.exchange(&token).unwrap(), None, "it is used up");
        assert_ne!(keys.token(), token);
        assert!(keys.exchange(&keys.token()).unwrap().is_some());
    }

    #[test]
    fn old_keys_are_forgotten() {
        let keys = Keys::new().unwrap();
        let first = keys.exchange(&keys.token()).unwrap().unwrap();
        for _ in 0..KEYS_MOST {
            keys.exchange(&keys.token()).unwrap().unwrap();
        }
        assert!(!keys.knows(&first));
    }
}
