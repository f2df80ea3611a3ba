//! Commands of other users than their shims, and their private folders.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use miserly_launch::{Exit, JobUser, PrivateFolders, StartFailure};
use miserly_test_support::Requirement;
use rustix::process::getuid;
use tempfile::TempDir;

use crate::support::{Test, output, until};

/// Numbers without an account, so that no account of the machine is touched.
pub(crate) const UID: u32 = 61_234;
const GID: u32 = 61_235;
const GROUPS: [u32; 2] = [61_235, 61_236];

/// Returns an attempt of another user in a folder that this user may write. `None` without root's rights.
pub(crate) fn of_user(script: &str) -> Option<Test> {
    if !Requirement::Root.is_met(getuid().is_root(), "needs root") {
        return None;
    }
    let mut test = Test::new(script);
    fs::set_permissions(test.folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let no_new_privileges = true;
    test.spec.user = Some(JobUser {
        name: "nobody-else".into(),
        uid: UID,
        gid: GID,
        groups: GROUPS.to_vec(),
        no_new_privileges,
        pam: None,
    });
    Some(test)
}

fn allow_privileges(test: &mut Test) {
    if let Some(user) = &mut test.spec.user {
        user.no_new_privileges = false;
    }
}

#[test]
fn it_has_the_rights_of_its_user_and_no_others() {
    let Some(test) = of_user("grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs)' /proc/self/status; umask") else {
        return;
    };
    let out = output(&test);
    let fields: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    let (uid, gid) = (UID.to_string(), GID.to_string());
    assert_eq!(fields[0], ["Uid:", &uid, &uid, &uid, &uid]);
    assert_eq!(fields[1], ["Gid:", &gid, &gid, &gid, &gid]);
    assert_eq!(fields[2], ["Groups:", "61235", "61236"]);
    for set in &fields[3..8] {
        assert!(set[0].starts_with("Cap"), "{out}");
        assert_eq!(u64::from_str_radix(set[1], 16), Ok(0), "{out}");
    }
    assert_eq!(fields[8], ["NoNewPrivs:", "1"]);
    assert_eq!(fields[9], ["0022"]);
    let file = fs::metadata(test.folder.path().join("out")).unwrap();
    assert_eq!((file.uid(), file.gid()), (UID, GID));
}

#[test]
fn it_opens_files_by_its_own_rights() {
    let Some(mut test) = of_user("true") else { return };
    let folder = test.folder.path().join("of-root");
    fs::create_dir(&folder).unwrap();
    test.spec.stdout.path = folder.join("out");
    let Exit::Failed(StartFailure::OutputFile { error, .. }) = test.run().exit else {
        panic!("it opened it")
    };
    assert!(error.contains("ermission"), "{error}");
    assert!(!folder.join("out").exists());

    let Some(mut test) = of_user("true") else { return };
    let folder = test.folder.path().join("of-root");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    test.spec.cwd = folder;
    assert!(matches!(test.run().exit, Exit::Failed(StartFailure::WorkingDirectory { .. })));
}

#[test]
fn its_script_runs_though_it_cannot_see_its_folder() {
    let Some(mut test) = of_user("") else { return };
    let dir = test.dir();
    test.spec.script =
        Some(format!("#!/bin/sh -u\necho \"$1 and $2\"; ls {} || echo hidden\n", dir.display()));
    test.spec.argv = vec!["one".into(), "two words".into()];
    let out = output(&test);
    assert!(out.starts_with("one and two words\n") && out.ends_with("hidden\n"), "{out}");
    assert!(!dir.join("script").exists());
}

#[test]
fn it_cannot_signal_its_shim() {
    let Some(test) = of_user("for signal in STOP KILL TERM; do kill -$signal $PPID && echo sent; done; true")
    else {
        return;
    };
    let out = output(&test);
    assert!(!out.contains("sent"), "{out}");
}

/// A program that is root's, with the set-user-ID bit, which prints its effective user.
fn set_user_id_program(test: &Test) {
    let program = test.folder.path().join("whose");
    fs::copy("/usr/bin/id", &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
}

#[test]
fn a_program_with_the_set_user_id_bit_gives_no_rights_unless_it_may() {
    if !Path::new("/usr/bin/id").exists() {
        return;
    }
    let Some(test) = of_user("./whose -u") else { return };
    set_user_id_program(&test);
    assert_eq!(output(&test), format!("{UID}\n"));
    let Some(mut test) = of_user("./whose -u; grep CapBnd /proc/self/status") else { return };
    allow_privileges(&mut test);
    set_user_id_program(&test);
    let out = output(&test);
    assert!(out.starts_with("0\n") && !out.ends_with("0000000000000000\n"), "{out}");
}

#[test]
fn what_it_leaves_in_its_private_folders_is_gone_with_it() {
    fs::create_dir_all("/var/tmp").unwrap();
    let name = format!("miserly-{}", std::process::id());
    let script = format!(
        "for folder in /tmp /dev/shm; do echo text >$folder/{name}; df -k $folder | tail -1 | grep -o '[0-9][0-9]*' | head -1; \
         done; ls /tmp; echo there; sleep 60"
    );
    let Some(mut test) = of_user(&script) else { return };
    let folder = TempDir::new_in("/var/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    test.spec.cwd = folder.path().to_owned();
    test.spec.private_folders = Some(PrivateFolders { size: Some(8 << 20) });
    let shim = test.launch();
    let out =
        until(|| fs::read_to_string(folder.path().join("out")).ok().filter(|out| out.ends_with("there\n")));
    assert_eq!(out, format!("8192\n8192\n{name}\nthere\n"));
    for folder in ["/tmp", "/dev/shm"] {
        assert!(!Path::new(folder).join(&name).exists(), "{folder}");
    }
    // The machine's System V IPC is another.
    let own = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/ipc")).unwrap();
    let main = fs::read_to_string(test.dir().join("started.json")).unwrap();
    let main: serde_json::Value = serde_json::from_str(&main).unwrap();
    assert_ne!(own(&main["pid"].to_string()), own("self"));
    drop(shim);
}

#[test]
fn a_working_directory_that_its_own_folder_hides_is_named() {
    let Some(mut test) = of_user("true") else { return };
    if !test.folder.path().starts_with("/tmp") {
        return;
    }
    test.spec.private_folders = Some(PrivateFolders { size: None });
    let Exit::Failed(failure) = test.run().exit else { panic!("it began") };
    assert!(failure.to_string().contains("a folder of its own there"), "{failure}");
}

#[test]
fn a_command_is_never_roots() {
    let Some(mut test) = of_user("true") else { return };
    if let Some(user) = &mut test.spec.user {
        user.uid = 0;
    }
    assert!(test.spec.check().is_err());
}

#[test]
fn a_missing_service_of_pam_refuses_the_account() {
    let Some(mut test) = of_user("true") else { return };
    if let Some(user) = &mut test.spec.user {
        user.pam = Some("miserly-has-no-such-service".into());
    }
    // Also without PAM, which cannot be loaded then.
    let Exit::Failed(failure) = test.run().exit else { panic!("it began") };
    assert!(failure.to_string().contains("PAM") || failure.to_string().contains("libpam"), "{failure}");
}

/// A service of PAM, removed with this value.
pub(crate) struct PamService(PathBuf);

impl PamService {
    /// Creates the service of one test. `None` on a machine without PAM.
    pub(crate) fn new(test: &str, lines: &str) -> Option<PamService> {
        if !Path::new("/etc/pam.d").exists() {
            return None;
        }
        let path = PathBuf::from(format!("/etc/pam.d/miserly-{test}-{}", std::process::id()));
        fs::write(&path, format!("auth required pam_permit.so\naccount required pam_permit.so\n{lines}\n"))
            .unwrap();
        Some(PamService(path))
    }

    pub(crate) fn name(&self) -> String {
        self.0.file_name().unwrap().to_str().unwrap().to_owned()
    }
}

impl Drop for PamService {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_service_of_pam_sets_limits_and_variables() {
    let Some(mut test) = of_user("ulimit -Hn; echo $COLOUR") else { return };
    let (limits, variables) = (test.folder.path().join("limits"), test.folder.path().join("variables"));
    fs::write(&limits, "* hard nofile 345\n").unwrap();
    fs::write(&variables, "COLOUR=green\n").unwrap();
    let lines = format!(
        "session required pam_limits.so conf={}\nsession required pam_env.so conffile=/dev/null envfile={}",
        limits.display(),
        variables.display()
    );
    let Some(service) = PamService::new("limits", &lines) else { return };
    if let Some(user) = &mut test.spec.user {
        (user.name, user.pam) = ("nobody".into(), Some(service.name()));
    }
    assert_eq!(output(&test), "345\ngreen\n");
}
