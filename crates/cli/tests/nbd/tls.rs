//! TLS with clients that use GnuTLS: nbdinfo, nbdcopy and qemu.

use crate::common::Lab;
use crate::served::{DRIVE, Served, ok, real};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

/// Makes folders of certificates: `tls` for an authority, a server and a client; `stranger` for a client of another
/// authority; `nobody` without a client certificate. All folders contain the authority of `tls` as the trusted one.
fn certificates(lab: &Lab) {
    for folder in ["tls", "stranger"] {
        lab.make_directory(folder);
        let mut params = CertificateParams::new([]).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        let authority = params.self_signed(&key).expect("a certificate");
        lab.write(&format!("{folder}/ca-cert.pem"), authority.pem());
        let issuer = Issuer::new(params, key);
        for (name, usage) in
            [("server", ExtendedKeyUsagePurpose::ServerAuth), ("client", ExtendedKeyUsagePurpose::ClientAuth)]
        {
            let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![usage];
            let key = KeyPair::generate().expect("a key");
            let certificate = params.signed_by(&key, &issuer).expect("a certificate");
            lab.write(&format!("{folder}/{name}-cert.pem"), certificate.pem());
            lab.write(&format!("{folder}/{name}-key.pem"), key.serialize_pem());
        }
    }
    lab.make_directory("nobody");
    for folder in ["stranger", "nobody"] {
        lab.write(&format!("{folder}/ca-cert.pem"), lab.read("tls/ca-cert.pem"));
    }
}

/// Starts a server with the certificates in `tls`.
fn serve(lab: &Lab, tls: &str) -> Served {
    Served::start(lab, &format!("--tcp localhost:0 --tls-certificates tls {tls}"))
}

fn port(served: &Served) -> &str {
    served.uris[0].rsplit(':').next().expect("a port")
}

/// The URI for a client with the certificates in `folder`. The server's certificate is for the name `localhost`.
fn uri(lab: &Lab, served: &Served, folder: &str) -> String {
    format!("nbds://localhost:{}/?tls-certificates={}", port(served), lab.path(folder).display())
}

#[test]
fn clients_verify_the_server_and_are_verified() {
    let lab = Lab::new();
    certificates(&lab);
    let plain = |served: &Served| format!("nbd://localhost:{}/", port(served));
    let required = serve(&lab, "--tls require");
    let Some(info) = ok(&lab, "nbdinfo", &uri(&lab, &required, "nobody")) else { return };
    assert!(info.contains("with TLS"), "{info}");
    // Without TLS the server does not even reveal the name of an export.
    let list = real(&lab, "nbdinfo", &format!("--list {}", plain(&required))).expect("it ran before");
    assert!(!list.status.success() && !String::from_utf8_lossy(&list.stdout).contains(DRIVE));
    required.ends_well();

    let offered = serve(&lab, "--tls on");
    let info = ok(&lab, "nbdinfo", &plain(&offered)).expect("it ran before");
    assert!(info.contains("without TLS"), "{info}");
    let info = ok(&lab, "nbdinfo", &uri(&lab, &offered, "nobody")).expect("it ran before");
    assert!(info.contains("with TLS"), "{info}");
    offered.ends_well();

    let verified = serve(&lab, "--tls require --tls-verify-peer");
    for (folder, is_accepted) in [("tls", true), ("stranger", false), ("nobody", false)] {
        let size = format!("--size {}", uri(&lab, &verified, folder));
        let output = real(&lab, "nbdinfo", &size).expect("it ran before");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), is_accepted, "{folder}: {error}");
    }
    verified.ends_well();
}

#[test]
fn data_comes_back_through_tls() {
    let lab = Lab::new();
    certificates(&lab);
    let image: Vec<u8> = (0..9_u32 << 18).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    lab.write("image", &image);
    let served = serve(&lab, "--tls require --tls-verify-peer");
    let uri = uri(&lab, &served, "tls");
    if ok(&lab, "nbdcopy", &format!("--flush image {uri}")).is_none() {
        return;
    }
    ok(&lab, "nbdcopy", &format!("{uri} copy"));
    let copy = lab.read_bytes("copy");
    assert!(copy[..image.len()] == image && copy[image.len()..].iter().all(|byte| *byte == 0));
    // qemu has its own NBD client.
    let credentials = format!("tls-creds-x509,id=tls,endpoint=client,dir={}", lab.path("tls").display());
    let drive = format!("driver=nbd,host=localhost,port={},tls-creds=tls", port(&served));
    let commands =
        ["-c", "write -P 3 64M 1M", "-c", "read -P 3 64M 1M", "-c", "discard 64M 1M", "-c", "flush"];
    let through = ["--object", &credentials, "--image-opts", &drive];
    let Some(text) = ok(&lab, "qemu-io", &[&commands[..], &through].concat()) else { return };
    assert!(!text.contains("failed"), "{text}");
    served.ends_well();
}
