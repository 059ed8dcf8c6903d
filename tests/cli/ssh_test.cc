// --on ssh:HOST, with an sshd of the test's own on a port of this machine.
//
// The key, the daemon's and the client's configuration lie in the test's folder; `ssh` and `scp` in front of
// PATH take that configuration, so that nothing of the user's is read or changed.
#include <arpa/inet.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "driver/machine.h"
#include "driver/options.h"
#include "program.h"
#include "sinter/runner_board.h"
#include "targets/target.h"

extern char** environ;

namespace sinter {
namespace {

namespace fs = std::filesystem;

std::string daemon_program() {
  for (const char* name : {"sshd", "/usr/sbin/sshd", "/usr/local/sbin/sshd"})
    if (const std::string path = find_program(name); !path.empty()) return path;
  return "";
}

int connected(int port) {
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(static_cast<uint16_t>(port));
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int code = connect(s, reinterpret_cast<sockaddr*>(&a), sizeof a);
  close(s);
  return code;
}

int free_port() {
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof a;
  if (bind(s, reinterpret_cast<sockaddr*>(&a), size) != 0 ||
      getsockname(s, reinterpret_cast<sockaddr*>(&a), &size) != 0)
    return -1;
  close(s);
  return ntohs(a.sin_port);
}

class OnSsh : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }
  void SetUp() override {
    const std::string daemon = daemon_program(), ssh = find_program("ssh"), scp = find_program("scp");
    if (daemon.empty() || ssh.empty() || scp.empty() || find_program("ssh-keygen").empty())
      GTEST_SKIP() << "no sshd, ssh, scp or ssh-keygen (Debian: openssh-server, openssh-client)";
    // One of these tests at a time: they count the folders that the compiler leaves on the board, and share
    // the daemon's own.
    lock_ = open((fs::temp_directory_path() / fmt::format("sinter_on_ssh_{}.lock", geteuid())).c_str(),
                 O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(lock_, 0);
    ASSERT_EQ(flock(lock_, LOCK_EX), 0);
    for (const char* key : {"host", "user"})
      ASSERT_EQ(run_process({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path(key)}, true).code, 0);
    port_ = free_port();
    fs::copy(path("user.pub"), path("authorized"));
    // What a daemon of root's separates its privileges in; the system's own start makes it.
    if (geteuid() == 0 && !fs::exists("/run/sshd")) made_ = fs::create_directory("/run/sshd");
    put(path("sshd_config"),
        fmt::format(
            "ListenAddress 127.0.0.1:{}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n"
            "PermitRootLogin yes\nPidFile none\nSubsystem sftp internal-sftp\n",
            port_, path("host"), path("authorized")));
    put(path("ssh_config"),
        fmt::format("Host board\n HostName 127.0.0.1\n Port {0}\n"
                    "Host *\n User {1}\n IdentityFile {2}\n IdentitiesOnly yes\n UserKnownHostsFile {3}\n"
                    " GlobalKnownHostsFile none\n StrictHostKeyChecking accept-new\n",
                    port_, getpwuid(geteuid())->pw_name, path("user"), path("known")));
    fs::create_directory(path("bin"));
    for (const auto& [name, program] : {std::pair{"ssh", ssh}, std::pair{"scp", scp}}) {
      const std::string file = path(std::string("bin/") + name);
      put(file, fmt::format("#!/bin/sh\nexec {} -F {} \"$@\"\n", program, path("ssh_config")));
      chmod(file.c_str(), 0755);
    }
    before_ = std::getenv("PATH");
    setenv("PATH", (path("bin") + ":" + before_).c_str(), 1);
    const std::string config = path("sshd_config"), log = path("log");
    const char* const argv[] = {daemon.c_str(), "-D", "-f", config.c_str(), "-E", log.c_str(), nullptr};
    ASSERT_EQ(posix_spawn(&daemon_, daemon.c_str(), nullptr, nullptr, const_cast<char**>(argv), environ), 0);
    for (int i = 0; i < 100 && connected(port_) != 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (run_process({"ssh", "-o", "BatchMode=yes", "board", "true"}, true).code != 0)
      GTEST_SKIP() << "an sshd of this user's lets nobody in:\n" << contents(log);
    save_text("g (float[N,2] x) => (float[N,2] y) <float[2] w = {3, 5}> { h = Mul(x, w) y = Sigmoid(h) }",
              path("m.onnx"));
  }
  void TearDown() override {
    if (daemon_ > 0) {
      kill(daemon_, SIGTERM);
      waitpid(daemon_, nullptr, 0);
    }
    if (!before_.empty()) setenv("PATH", before_.c_str(), 1);
    if (made_) fs::remove("/run/sshd");
    if (lock_ >= 0) close(lock_);  // another of these tests in this process waits for it
  }
  std::string board() const { return fmt::format("ssh:127.0.0.1:{}", port_); }
  // Nothing of ours is left on the "board".
  static size_t left_folders() {
    size_t n = 0;
    for (const auto& e : fs::directory_iterator(fs::temp_directory_path()))
      n += e.path().filename().string().rfind("sinter-board-", 0) == 0;
    return n;
  }

  TemporaryFolder folder_;
  std::string before_;
  pid_t daemon_ = -1;
  int port_ = -1, lock_ = -1;
  bool made_ = false;
};

TEST_F(OnSsh, RunsAndBringsTheOutputsBack) {
  put(path("x.pb"), std::string("\x08\x02\x08\x02\x10\x01\x4a\x10", 8) +
                        std::string("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16));
  // By address and port, and by what ~/.ssh/config calls it.
  for (const auto& [on, y] :
       {std::pair{board(), "y.npy"}, std::pair{std::string("ssh:board"), "y 'with blanks'.pb"}}) {
    expect({"run", path("m.onnx"), "--target", "host", "--on", on, "--in", path("x.pb"), "--out", path(y)}, 0,
           "y float32[2,2] -> " + path(y));
    const Tensor got = read_tensor_file(path(y));
    EXPECT_EQ(got.shape(), (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(got.as<float>()[3], 0.5f);
  }
  expect({"compile", path("m.onnx"), "--dim", "N<=3", "--weights", "file", "-o", path("net")}, 0, "m: ");
  expect({"run", "--bundle", path("net"), "--on", board(), "--in", path("x.pb")}, 0,
         "y float32[2,2]: 0.5 0.5 0.5 0.5");
  EXPECT_EQ(left_folders(), 0u);
}

TEST_F(OnSsh, VerifiesEachLayer) {
  expect({"verify", path("m.onnx"), "--dim", "N=3", "--target", "host", "--on", board()}, 0,
         "1 outputs as expected");
  EXPECT_EQ(left_folders(), 0u);
}

TEST_F(OnSsh, Benches) {
  const std::string core = std::to_string(runner::usable_cores().back());
  const std::vector<std::string> bench = {"bench",    path("m.onnx"), "--dim", "N=3",
                                          "--target", "host",         "--on",  board()};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = bench;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  expect(with({"--repeat", "3", "--json", path("b.json"), "--threads", "1,2", "--cores", core}), 0, "min ");
  const std::string json = contents(path("b.json"));
  for (const std::string& key :
       {std::string("\"on\": \"ssh:127.0.0.1:"), std::string("\"min_us\""), std::string("\"share\""),
        std::string("\"bytes\""), std::string("\"threads\": 2"), "\"cores\": \"" + core + "\""})
    EXPECT_NE(json.find(key), std::string::npos) << key << "\n" << json;
  expect(with({"--cores", "4001"}), 2, "there is no core 4001; here are cores ");
  EXPECT_EQ(left_folders(), 0u);
}

TEST_F(OnSsh, Tunes) {
  save_text(
      "g (float[1,2,8,8] x) => (float[1,2,6,6] y) <float[2,2,3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, "
      "4, 5, "
      "6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9}> { y = Conv(x, w) }",
      path("c.onnx"));
  expect({"tune", path("c.onnx"), "--on", board(), "--repeat", "1", "-o", path("t.json")}, 0, " us, ");
  EXPECT_EQ(left_folders(), 0u);
}

TEST_F(OnSsh, WhatGoesWrongIsTold) {
  put(path("x.pb"), std::string("\x08\x02\x08\x02\x10\x01\x4a\x10", 8) + std::string(16, '\0'));
  const std::vector<std::string> run = {"run", path("m.onnx"), "--in", path("x.pb"), "--target"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = run;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  expect(with({"host", "--on", "ssh:127.0.0.1:1"}), 6, "gave no folder to work in");
  if (!find_program("aarch64-linux-gnu-g++").empty())
    expect(with({"aarch64", "--on", board()}), 6, "can't execute the program: is it what --target names?");
  if (!host_can_run(*find_target("avx512")) && host_can_run(*find_target("x86-64-v2")))
    expect(with({"avx512", "--on", board()}), 6, "has not all instructions of --target");
  put(path("x.pb"), std::string("\x08\x02\x10\x01\x4a\x08", 6) + std::string(8, '\0'));
  expect({"compile", path("m.onnx"), "--dim", "N<=3", "-o", path("net")}, 0, "m: ");
  expect({"run", "--bundle", path("net"), "--on", board(), "--in", path("x.pb")}, 2, "takes float32[N");
}

TEST(On, WrongUsage) {
  const TemporaryFolder folder;
  const std::string model = (folder.path() / "m.onnx").string();
  save_text("g (float[2] x) => (float[2] y) { y = Neg(x) }", model);
  for (const char* command : {"run", "verify", "bench"}) {
    expect({command, model, "--on", "ssh:board"}, 2, "give its --target");
    if (std::string(command) == "run") continue;  // which misses its inputs first
    for (const char* on : {"board", "ssh:", "ssh:-oProxyCommand=x"})
      expect({command, model, "--target", "host", "--on", on}, 2, "give host or ssh:HOST");
  }
}

}  // namespace
}  // namespace sinter
