//! The file of the socket.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use miserly_live::server::{Access, BindError, bind};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").mode() & 0o777
}

#[test]
fn nobody_else_gets_near_an_own_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/below/socket");
    let bound = bind(&path, Access::Own).unwrap();
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    UnixStream::connect(&path).unwrap();
    drop(bound);
    assert!(!path.exists());
}

#[test]
fn everybody_gets_to_the_machine_s_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("miserly/socket");
    let _bound = bind(&path, Access::Everybody).unwrap();
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o666, 0o755));
}

#[test]
fn a_dead_daemon_s_socket_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    drop(UnixListener::bind(&path).unwrap());
    assert!(UnixStream::connect(&path).is_err());
    let _bound = bind(&path, Access::Own).unwrap();
    UnixStream::connect(&path).unwrap();
}

#[test]
fn a_living_daemon_s_socket_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let first = bind(&path, Access::Own).unwrap();
    let error = bind(&path, Access::Own).unwrap_err();
    assert!(matches!(error, BindError::InUse(_)), "{error}");
    UnixStream::connect(first.path()).unwrap();

    let strange = folder.path().join("strange");
    let _listener = UnixListener::bind(&strange).unwrap();
    assert!(matches!(bind(&strange, Access::Own).unwrap_err(), BindError::InUse(_)));
    UnixStream::connect(&strange).unwrap();
}

#[test]
fn a_file_that_is_no_socket_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    fs::write(&path, "somebody's data").unwrap();
    let error = bind(&path, Access::Own).unwrap_err();
    assert!(matches!(error, BindError::NoSocket(_)), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "somebody's data");
}

#[test]
fn a_folder_that_others_may_write_to_will_not_do() {
    let folder = tempfile::tempdir().unwrap();
    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let error = bind(&open.join("socket"), Access::Own).unwrap_err();
    assert!(matches!(error, BindError::Folder { .. }), "{error}");
    // As in /tmp: other users cannot replace files of this one.
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
    bind(&open.join("socket"), Access::Own).unwrap();
}

#[test]
fn a_name_that_is_too_long_is_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x".repeat(120));
    let error = bind(&path, Access::Own).unwrap_err().to_string();
    assert!(error.contains("xxx"), "{error}");
}
