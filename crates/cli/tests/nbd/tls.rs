//! TLS as other implementations speak it: GnuTLS below nbdinfo, nbdcopy and qemu.

use crate::common::Lab;
use crate::served::{DRIVE, Served, ok, real};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

/// Makes `tls`, with certificates of an authority, a server and a client, and `stranger`, with a client's of another.
fn certificates(lab: &Lab) {
    for folder in ["tls", "stranger"] {
        std::fs::create_dir(lab.path(folder)).expect("a folder");
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
    // The stranger trusts the server, which does not trust the stranger.
    std::fs::copy(lab.path("tls/ca-cert.pem"), lab.path("stranger/ca-cert.pem")).expect("copied");
    // Somebody without a certificate.
    std::fs::create_dir(lab.path("nobody")).expect("a folder");
    std::fs::copy(lab.path("tls/ca-cert.pem"), lab.path("nobody/ca-cert.pem")).expect("copied");
}

/// The URI of a client with the certificates in `folder`. The certificate is for the name, not for the address.
fn uri(lab: &Lab, served: &Served, folder: &str) -> String {
    let port = served.uris[0].rsplit(':').next().expect("a port");
    format!("nbds://localhost:{port}/?tls-certificates={}", lab.path(folder).display())
}

#[test]
fn clients_verify_the_server_and_are_verified() {
    let lab = Lab::new();
    certificates(&lab);
    let place = ["--tcp", "localhost:0", "--tls-certificates", "tls"];
    let required = Served::start(&lab, &[&place[..], &["--tls", "require"]].concat());
    let Some(info) = ok(&lab, "nbdinfo", &[&uri(&lab, &required, "nobody")]) else { return };
    assert!(info.contains("with TLS"), "{info}");
    // Without TLS nothing is told, not even a name.
    let plain = uri(&lab, &required, "nobody").replace("nbds", "nbd");
    let told =
        real(&lab, "nbdinfo", &["--list", plain.split('?').next().expect("a URI")]).expect("it ran before");
    assert!(!told.status.success() && !String::from_utf8_lossy(&told.stdout).contains(DRIVE));
    required.ends_well();

    let offered = Served::start(&lab, &[&place[..], &["--tls", "on"]].concat());
    let plain = uri(&lab, &offered, "nobody").replace("nbds", "nbd");
    let info = ok(&lab, "nbdinfo", &[plain.split('?').next().expect("a URI")]).expect("it ran before");
    assert!(info.contains("without TLS"), "{info}");
    let info = ok(&lab, "nbdinfo", &[&uri(&lab, &offered, "nobody")]).expect("it ran before");
    assert!(info.contains("with TLS"), "{info}");
    offered.ends_well();

    let verified = Served::start(&lab, &[&place[..], &["--tls", "require", "--tls-verify-peer"]].concat());
    for (folder, welcome) in [("tls", true), ("stranger", false), ("nobody", false)] {
        let told = real(&lab, "nbdinfo", &["--size", &uri(&lab, &verified, folder)]).expect("it ran before");
        assert_eq!(told.status.success(), welcome, "{folder}: {}", String::from_utf8_lossy(&told.stderr));
    }
    verified.ends_well();
}

#[test]
fn data_comes_back_through_tls() {
    let lab = Lab::new();
    certificates(&lab);
    let image: Vec<u8> = (0..9_u32 << 18).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    lab.write("image", &image);
    let place = ["--tcp", "localhost:0", "--tls-certificates", "tls"];
    let served = Served::start(&lab, &[&place[..], &["--tls", "require", "--tls-verify-peer"]].concat());
    let port = served.uris[0].rsplit(':').next().expect("a port").to_owned();
    let uri = uri(&lab, &served, "tls");
    if ok(&lab, "nbdcopy", &["--flush", "image", &uri]).is_none() {
        return;
    }
    ok(&lab, "nbdcopy", &[&uri, "copy"]);
    let copy = std::fs::read(lab.path("copy")).expect("the copy");
    assert!(copy[..image.len()] == image && copy[image.len()..].iter().all(|byte| *byte == 0));
    // qemu has its own client of NBD.
    let credentials = format!("tls-creds-x509,id=tls,endpoint=client,dir={}", lab.path("tls").display());
    let drive = format!("driver=nbd,host=localhost,port={port},tls-creds=tls");
    let commands =
        ["-c", "write -P 3 64M 1M", "-c", "read -P 3 64M 1M", "-c", "discard 64M 1M", "-c", "flush"];
    let through = ["--object", &credentials, "--image-opts", &drive];
    let Some(said) = ok(&lab, "qemu-io", &[&commands[..], &through].concat()) else { return };
    assert!(!said.contains("failed"), "{said}");
    served.ends_well();
}
