/* nds_set_machine_file. The explanation of a plan names the machine in use. */

#include "check.h"

#include <stdio.h>
#include <stdlib.h>

/* Writes a file with this text and returns its name, which is valid until the next call. */
static const char *file_of(const char *text) {
  static char name[] = "/tmp/nds-machine-XXXXXX";
  memcpy(name + sizeof name - 7, "XXXXXX", 6);
  int file = mkstemp(name);
  CHECK(file >= 0);
  FILE *stream = fdopen(file, "w");
  CHECK(stream != NULL);
  CHECK(fputs(text, stream) >= 0);
  CHECK_INT(0, fclose(stream));
  return name;
}

/* Whether the explanation of a plan contains these words. */
static bool is_explained_by(const char *words) {
  base base;
  make_base(&base, SCATTER_ND);
  nds_plan *plan = NULL;
  CHECK_OK(make_plan(&base.problem, &plan));
  char text[4096];
  size_t length = sizeof text;
  CHECK_OK(nds_plan_explain(plan, text, &length));
  nds_plan_free(plan);
  return strstr(text, words) != NULL;
}

void test_machine(void) {
  CHECK(is_explained_by("typical rates"));
  const char *file = file_of("caches = 1024 2048 4096\nwake = 5000\n");
  CHECK_OK(nds_set_machine_file(file));
  CHECK(is_explained_by("caches of 1, 2 and 4 KiB, rates of its own"));
  remove(file);

  /* An unusable file changes nothing. */
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_set_machine_file(file));
  CHECK(strstr(nds_last_error(), "nds-machine") != NULL);
  file = file_of("caches = 1024 2048 4096\nwake = soon\n");
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_set_machine_file(file));
  CHECK(strstr(nds_last_error(), "line 2") != NULL);
  remove(file);
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_set_machine_file(""));
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_set_machine_file("/dev/zero"));
  CHECK(strstr(nds_last_error(), "not a regular file") != NULL);
  CHECK(is_explained_by("caches of 1, 2 and 4 KiB, rates of its own"));

  CHECK_OK(nds_set_machine_file(NULL));
  CHECK(is_explained_by("typical rates"));
}
