//! The seal of a submission: proof of its user that only the executor can make.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Read, Write};

use hmac::{Hmac, KeyInit, Mac};
use miserly_api::model::{Array, Interaction, PathText, RawVariable, Retry, Submission};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, fsync, openat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The file of the key, in the folder of the state.
const FILE: &str = "executor.key";
const UNFINISHED: &str = "executor.key.new";
/// The first bytes of the sealed content: those of earlier versions, and those of seals with an instant and a number.
const WITHOUT_ISSUE: &[u8] = b"miserly submission 1\n";
const WITHOUT_GPUS: &[u8] = b"miserly submission 2\n";
const VERSION: &[u8] = b"miserly submission 3\n";
const BYTES: usize = 32;

/// The time after which a seal expires, in seconds: 180 days.
pub const LIFETIME: i64 = 180 * 86_400;

/// The key of the seals. It survives restarts, and only root can read it.
pub struct Key([u8; BYTES]);

/// The user of a submission, sealed together with the command of the submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// The user's number.
    pub uid: u32,
    /// The group's number of the process that submitted.
    pub gid: u32,
    /// The user's name at the submission.
    pub user: String,
    /// What makes the seal one of its own; `None` in seals of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue: Option<Issue>,
    /// HMAC-SHA256 over the other fields and the submission, as hexadecimal digits.
    pub mac: String,
}

/// What makes a seal one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Issue {
    /// The instant, in seconds since 1970.
    pub at: i64,
    /// A number that no other seal has: it is drawn at random.
    pub serial: [u64; 2],
}

impl Issue {
    /// Returns a new one.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new() -> io::Result<Issue> {
        let mut bytes = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let serial = u128::from_ne_bytes(bytes);
        let half = |bits: u128| u64::try_from(bits & u128::from(u64::MAX)).unwrap_or(0);
        Ok(Issue { at: wall_seconds(), serial: [half(serial >> 64), half(serial)] })
    }

    /// Returns the number.
    pub(crate) fn number(self) -> u128 {
        u128::from(self.serial[0]) << 64 | u128::from(self.serial[1])
    }
}

/// Returns the wall time, in seconds since 1970.
pub(crate) fn wall_seconds() -> i64 {
    clock_gettime(ClockId::Realtime).tv_sec
}

/// The reason why a credential does not prove the user of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealProblem {
    /// There is none.
    #[error("the job has no credential: its state is of a daemon that ran jobs as one user; submit it again")]
    Missing,
    /// It cannot be read.
    #[error("the credential of the job is damaged")]
    Malformed,
    /// It is another submission's, or the submission was changed, or it was sealed with another key.
    #[error("the credential of the job does not prove that its user submitted it as it is now")]
    Wrong,
    /// It is too old.
    #[error("the credential of the job has expired, after {days} days; submit it again", days = LIFETIME / 86_400)]
    Expired,
}

/// The sealed part of a submission: the command with its surroundings, and the files that it reads and writes.
#[derive(Serialize)]
struct Sealed<'a> {
    command: &'a [String],
    script: Option<&'a str>,
    name: Option<&'a str>,
    directory: PathText,
    environment: &'a BTreeMap<String, String>,
    environment_bytes: &'a [RawVariable],
    /// Left out where there is none, so that the seals of earlier versions stay valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<PathText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interaction: Option<Interaction>,
    output: Option<PathText>,
    error: Option<PathText>,
    umask: u32,
    /// Left out in seals of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<Placement<'a>>,
}

/// Where and how often a submission runs, and its memory.
#[derive(Serialize)]
struct Placement<'a> {
    queue: Option<&'a str>,
    memory: Option<u64>,
    /// Left out where there are none, and in seals of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpus: Option<SealedGpus<'a>>,
    array: Option<&'a Array>,
    retry: Option<&'a Retry>,
    restartable: bool,
}

/// The GPUs of a submission.
#[derive(Serialize)]
struct SealedGpus<'a> {
    count: u64,
    kind: Option<&'a str>,
    memory: Option<u64>,
}

impl<'a> SealedGpus<'a> {
    fn new(submission: &'a Submission) -> Option<SealedGpus<'a>> {
        let (kind, memory) = (submission.gpu_type.as_deref(), submission.gpu_memory);
        let count = submission.gpu_count();
        (count > 0).then_some(SealedGpus { count, kind, memory })
    }
}

impl Key {
    /// Returns the key with these bytes.
    pub const fn new(bytes: [u8; BYTES]) -> Key {
        Key(bytes)
    }

    /// Reads the key in a folder that only root can change, and creates it at the first time.
    ///
    /// # Errors
    /// The file is not one of root's alone, or cannot be read or written.
    pub fn open(folder: impl AsFd) -> io::Result<Key> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match openat(&folder, FILE, flags, Mode::empty()) {
            Ok(file) => Key::read(file),
            Err(Errno::NOENT) => Key::create(&folder),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates the key. Its file has its name when it is complete.
    fn create(folder: impl AsFd) -> io::Result<Key> {
        let mut key = Key([0; BYTES]);
        File::open("/dev/urandom")?.read_exact(&mut key.0)?;
        match unlinkat(&folder, UNFINISHED, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(openat(&folder, UNFINISHED, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(&key.0)?;
        file.sync_all()?;
        renameat(&folder, UNFINISHED, &folder, FILE)?;
        fsync(openat(&folder, ".", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)?;
        Ok(key)
    }

    fn read(file: OwnedFd) -> io::Result<Key> {
        let found = fstat(&file)?;
        let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        if !is_file || found.st_uid != geteuid().as_raw() || found.st_mode & 0o077 != 0 || found.st_nlink != 1
        {
            let message = format!(
                "{FILE} is no file of root's alone (mode 600); remove it, and submit waiting jobs again"
            );
            return Err(io::Error::other(message));
        }
        let mut bytes = Vec::new();
        File::from(file).take(BYTES as u64 + 1).read_to_end(&mut bytes)?;
        let key = bytes
            .try_into()
            .map_err(|_| io::Error::other(format!("{FILE} is damaged: it has {BYTES} bytes")))?;
        Ok(Key(key))
    }

    /// Seals a submission of a user.
    ///
    /// # Errors
    /// [`SealProblem::Malformed`] if a path is not UTF-8.
    pub fn seal(
        &self,
        uid: u32,
        gid: u32,
        user: &str,
        submission: &Submission,
        issue: Issue,
    ) -> Result<Credential, SealProblem> {
        let mac = self.mac(uid, gid, user, Some(issue), submission, VERSION)?.finalize().into_bytes();
        let mut text = String::with_capacity(2 * mac.len());
        for byte in mac {
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Credential { uid, gid, user: user.to_owned(), issue: Some(issue), mac: text })
    }

    /// Returns the credential in a text if it is that of this submission, and has not expired. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// [`SealProblem`].
    pub fn verified(
        &self,
        text: Option<&str>,
        submission: &Submission,
        now: i64,
    ) -> Result<Credential, SealProblem> {
        let text = text.ok_or(SealProblem::Missing)?;
        let credential: Credential = serde_json::from_str(text).map_err(|_| SealProblem::Malformed)?;
        let mac = bytes(&credential.mac).ok_or(SealProblem::Malformed)?;
        let Credential { uid, gid, user, issue, .. } = &credential;
        // A version is in its seal, so a new seal does not pass as an earlier one.
        let versions: &[&[u8]] = if issue.is_some() { &[VERSION, WITHOUT_GPUS] } else { &[WITHOUT_ISSUE] };
        let mut verified = false;
        for version in versions {
            // The comparison takes the same time for each wrong value.
            verified |= self.mac(*uid, *gid, user, *issue, submission, version)?.verify_slice(&mac).is_ok();
        }
        if !verified {
            return Err(SealProblem::Wrong);
        }
        if issue.is_some_and(|issue| issue.at.saturating_add(LIFETIME) < now) {
            return Err(SealProblem::Expired);
        }
        Ok(credential)
    }

    fn mac(
        &self,
        uid: u32,
        gid: u32,
        user: &str,
        issue: Option<Issue>,
        submission: &Submission,
        version: &[u8],
    ) -> Result<Hmac<Sha256>, SealProblem> {
        let sealed = Sealed {
            command: &submission.command,
            script: submission.script.as_deref(),
            name: submission.name.as_deref(),
            directory: PathText::from(submission.directory.as_path()),
            environment: &submission.environment,
            environment_bytes: &submission.environment_bytes,
            input: submission.input.as_deref().map(PathText::from),
            interaction: submission.interaction,
            output: submission.output.as_deref().map(PathText::from),
            error: submission.error.as_deref().map(PathText::from),
            umask: submission.umask,
            placement: issue.map(|_| Placement {
                queue: submission.queue.as_deref(),
                memory: submission.memory,
                gpus: SealedGpus::new(submission).filter(|_| version == VERSION),
                array: submission.array.as_ref(),
                retry: submission.retry.as_ref(),
                restartable: submission.restartable,
            }),
        };
        // JSON separates the fields, so no two submissions have the same text.
        let sealed = serde_json::to_vec(&sealed).map_err(|_| SealProblem::Malformed)?;
        let user = match issue {
            Some(issue) => serde_json::to_vec(&(uid, gid, user, issue)),
            None => serde_json::to_vec(&(uid, gid, user)),
        };
        let user = user.map_err(|_| SealProblem::Malformed)?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).map_err(|_| SealProblem::Malformed)?;
        mac.update(version);
        mac.update(&user);
        mac.update(&Sha256::digest(sealed));
        Ok(mac)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Key(..)")
    }
}

/// Returns the bytes of hexadecimal digits.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let is_hexadecimal = digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
    let pairs = digits.chunks_exact(2);
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if is_hexadecimal { pairs.map(pair).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs::{self, Permissions};
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const ANN: (u32, u32, &str) = (1001, 1001, "ann");
    const ISSUE: Issue = Issue { at: 1_800_000_000, serial: [1, 2] };
    const NOW: i64 = ISSUE.at + 1;

    fn submission() -> Submission {
        Submission {
            command: vec!["make".into(), "all".into()],
            directory: "/home/ann".into(),
            environment: [("PATH".into(), "/bin".into())].into(),
            cpus: 1,
            umask: 0o022,
            ..Submission::default()
        }
    }

    fn sealed(key: &Key, submission: &Submission) -> String {
        let (uid, gid, user) = ANN;
        serde_json::to_string(&key.seal(uid, gid, user, submission, ISSUE).unwrap()).unwrap()
    }

    #[test]
    fn a_seal_holds_for_its_user_and_its_submission_only() {
        let key = Key([7; BYTES]);
        let text = sealed(&key, &submission());
        let verified = key.verified(Some(&text), &submission(), NOW).unwrap();
        assert_eq!((verified.uid, verified.gid, verified.user.as_str()), ANN);
        // What does not choose what runs may change: a job can be extended.
        let longer = Submission { time: 7.0, cpus: 2, ..submission() };
        assert!(key.verified(Some(&text), &longer, NOW).is_ok());
        let raw = |name: &[u8]| vec![RawVariable { name: name.to_vec(), value: vec![255] }];
        let changes: [&dyn Fn(&mut Submission); 22] = [
            &|job| job.gpus = Some(1),
            &|job| job.gpu_memory = Some(1 << 30),
            &|job| job.queue = Some("other".into()),
            &|job| job.memory = Some(1 << 30),
            &|job| job.array = Some(Array::range(0, 1, 1)),
            &|job| job.retry = Some(Retry { limit: 1, codes: vec![] }),
            &|job| job.restartable = true,
            &|job| job.command[1] = "clean".into(),
            &|job| job.command = vec!["make all".into()],
            &|job| job.command = vec!["make".into()],
            &|job| job.script = Some(String::new()),
            &|job| job.name = Some("make".into()),
            &|job| job.directory = "/home/bob".into(),
            &|job| drop(job.environment.insert("PATH".into(), "/tmp".into())),
            &|job| drop(job.environment.insert("LD_PRELOAD".into(), "/tmp/x".into())),
            &|job| job.environment_bytes = raw(b"A"),
            &|job| job.input = Some("/home/ann/secret".into()),
            &|job| job.interaction = Some(Interaction::Stdin),
            &|job| job.output = Some("/home/ann/.profile".into()),
            &|job| job.error = Some("/home/ann/.profile".into()),
            &|job| job.umask = 0,
            &|job| job.environment.clear(),
        ];
        for change in changes {
            let mut other = submission();
            change(&mut other);
            assert_eq!(key.verified(Some(&text), &other, NOW), Err(SealProblem::Wrong), "{other:?}");
            // The seal of the other one is not this one's.
            let other = sealed(&key, &other);
            assert_eq!(key.verified(Some(&other), &submission(), NOW), Err(SealProblem::Wrong));
        }
    }

    #[test]
    fn a_changed_credential_is_refused() {
        let key = Key([7; BYTES]);
        let credential: Credential = serde_json::from_str(&sealed(&key, &submission())).unwrap();
        let check = |credential: &Credential, expect| {
            let text = serde_json::to_string(credential).unwrap();
            assert_eq!(key.verified(Some(&text), &submission(), NOW), Err(expect), "{text}");
        };
        let of = |mac: &str| Credential { mac: mac.into(), ..credential.clone() };
        check(&Credential { uid: 1002, ..credential.clone() }, SealProblem::Wrong);
        check(&Credential { uid: 0, ..credential.clone() }, SealProblem::Wrong);
        check(&Credential { gid: 0, ..credential.clone() }, SealProblem::Wrong);
        check(&Credential { user: "bob".into(), ..credential.clone() }, SealProblem::Wrong);
        let issued = |at, serial| Credential { issue: Some(Issue { at, serial }), ..credential.clone() };
        check(&issued(ISSUE.at + 1, ISSUE.serial), SealProblem::Wrong);
        check(&issued(ISSUE.at, [1, 3]), SealProblem::Wrong);
        check(&Credential { issue: None, ..credential.clone() }, SealProblem::Wrong);
        check(&of(""), SealProblem::Wrong);
        check(&of(&credential.mac[2..]), SealProblem::Wrong);
        check(&of(&credential.mac.replace(|_: char| true, "0")), SealProblem::Wrong);
        for mac in ["+1", "abc", "é"] {
            check(&of(mac), SealProblem::Malformed);
        }
        assert_eq!(key.verified(None, &submission(), NOW), Err(SealProblem::Missing));
        for text in ["", "{}", "null", r#"{"uid":1001,"gid":1001,"user":"ann","mac":"00","more":1}"#] {
            assert_eq!(key.verified(Some(text), &submission(), NOW), Err(SealProblem::Malformed), "{text}");
        }
        let text = sealed(&Key([8; BYTES]), &submission());
        assert_eq!(key.verified(Some(&text), &submission(), NOW), Err(SealProblem::Wrong));
    }

    #[test]
    fn a_seal_expires() {
        let key = Key([7; BYTES]);
        let text = sealed(&key, &submission());
        let at = |now| key.verified(Some(&text), &submission(), now).map(|_| ());
        assert_eq!(at(ISSUE.at + LIFETIME), Ok(()));
        assert_eq!(at(ISSUE.at + LIFETIME + 1), Err(SealProblem::Expired));
    }

    /// The jobs that wait during an upgrade have such seals.
    #[test]
    fn a_seal_of_an_earlier_version_holds() {
        // Computed by another program from the format of that version.
        let text = r#"{"uid":1001,"gid":1001,"user":"ann","mac":"71a2e71d0ecf6e2967d1834b4263efed1f818aaaaaa27420cd399dc185d3eace"}"#;
        let key = Key([7; BYTES]);
        let verified = key.verified(Some(text), &submission(), i64::MAX).unwrap();
        assert_eq!((verified.uid, verified.issue), (1001, None));
        let other = Submission { umask: 0, ..submission() };
        assert_eq!(key.verified(Some(text), &other, NOW), Err(SealProblem::Wrong));
    }

    #[test]
    fn a_seal_without_gpus_holds_for_a_job_with_some_only_if_its_version_sealed_none() {
        let key = Key([7; BYTES]);
        let (uid, gid, user) = ANN;
        let with_gpus = Submission { gpus: Some(1), ..submission() };
        let mac = key.mac(uid, gid, user, Some(ISSUE), &with_gpus, WITHOUT_GPUS).unwrap().finalize();
        let mac = mac.into_bytes().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        let earlier = Credential { uid, gid, user: user.to_owned(), issue: Some(ISSUE), mac };
        let earlier = serde_json::to_string(&earlier).unwrap();
        assert!(key.verified(Some(&earlier), &with_gpus, NOW).is_ok());
        let text = sealed(&key, &submission());
        assert_eq!(key.verified(Some(&text), &with_gpus, NOW), Err(SealProblem::Wrong));
    }

    #[test]
    fn each_issue_has_its_own_number() {
        let [first, second] = [0; 2].map(|_| Issue::new().unwrap());
        assert_ne!(first.number(), second.number());
        assert_eq!(ISSUE.number(), (1 << 64) + 2);
    }

    /// Their bytes are sealed: no two of them have the same form, nor that of a text.
    #[test]
    fn each_path_has_a_seal_of_its_own() {
        let key = Key([7; BYTES]);
        let of =
            |path: &[u8]| Submission { directory: OsString::from_vec(path.to_vec()).into(), ..submission() };
        let text = sealed(&key, &of(b"/\xff"));
        assert!(key.verified(Some(&text), &of(b"/\xff"), NOW).is_ok());
        for other in [&b"/\xfe"[..], b"/\xef\xbf\xbd", b"[47,255]", b"/"] {
            assert_eq!(key.verified(Some(&text), &of(other), NOW), Err(SealProblem::Wrong), "{other:?}");
        }
    }

    #[test]
    fn the_key_survives_and_is_the_owner_s_alone() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Key::open(File::open(folder.path()).unwrap());
        let (first, path) = (open().unwrap(), folder.path().join(FILE));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(open().unwrap().0, first.0);
        assert_ne!(first.0, [0; BYTES]);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        assert!(open().is_err(), "others can read it");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        fs::hard_link(&path, folder.path().join("link")).unwrap();
        assert!(open().is_err(), "it has another name");
        fs::remove_file(folder.path().join("link")).unwrap();
        for bytes in [&b"short"[..], &[1; BYTES + 1]] {
            fs::write(&path, bytes).unwrap();
            assert!(open().is_err(), "it is damaged");
        }
        fs::remove_file(&path).unwrap();
        symlink("/dev/zero", &path).unwrap();
        assert!(open().is_err(), "it is a link");
    }
}
