/* A stand-in for NVIDIA's library (NVML), for machines without a GPU. It has what the session asks
   for, and reads the figures from the file FIGURES: a line for each GPU with percent, memory and all
   memory (MB), degrees and milliwatts; "-" where a GPU does not tell. While the file begins with
   "hang", a question is not answered; with "none", there is no driver. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, NO_DRIVER = 9 };
enum { PERCENT, USED, TOTAL, DEGREES, MILLIWATTS, COLUMNS };

static int begins_with(const char *word) {
  char text[16] = "";
  FILE *file = fopen(FIGURES, "r");
  if (file) {
    if (!fgets(text, sizeof text, file)) text[0] = 0;
    fclose(file);
  }
  return strncmp(text, word, strlen(word)) == 0;
}

static int figure(unsigned long at, int column, unsigned long long *value) {
  char line[200], word[COLUMNS][20];
  FILE *file = fopen(FIGURES, "r");
  if (!file) return NOT_FOUND;
  for (unsigned long number = 0; fgets(line, sizeof line, file); number++) {
    if (number != at) continue;
    fclose(file);
    if (sscanf(line, "%19s %19s %19s %19s %19s", word[0], word[1], word[2], word[3], word[4]) != 5)
      return INVALID;
    if (strcmp(word[column], "-") == 0) return NOT_SUPPORTED;
    *value = strtoull(word[column], NULL, 10);
    return SUCCESS;
  }
  fclose(file);
  return NOT_FOUND;
}

int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  while (begins_with("hang")) usleep(20000);
  return begins_with("none") ? NO_DRIVER : SUCCESS;
}

const char *nvmlErrorString(int result) {
  return result == NO_DRIVER ? "Driver Not Loaded" : "An error of the stand-in";
}

int nvmlDeviceGetCount_v2(unsigned *count) {
  unsigned long long ignored;
  for (*count = 0; figure(*count, TOTAL, &ignored) != NOT_FOUND;) ++*count;
  return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned at, void **device) {
  unsigned long long ignored;
  *device = (void *)(unsigned long)(at + 1);
  return figure(at, TOTAL, &ignored) == NOT_FOUND ? INVALID : SUCCESS;
}

/* GPU-stand-in-0 and so on. */
int nvmlDeviceGetHandleByUUID(const char *name, void **device) {
  const char *number = strrchr(name, '-');
  return nvmlDeviceGetHandleByIndex_v2(number ? atoi(number + 1) : 99, device);
}

static int of(void *device, int column, unsigned long long *value) {
  while (begins_with("hang")) usleep(20000);
  return figure((unsigned long)device - 1, column, value);
}

int nvmlDeviceGetName(void *device, char *name, unsigned length) {
  (void)device;
  snprintf(name, length, "Stand-in V100");
  return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned *use) {
  unsigned long long percent = 0;
  int result = of(device, PERCENT, &percent);
  use[0] = percent;
  use[1] = 0;
  return result;
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *memory) {
  unsigned long long used = 0, total = 0;
  int result = of(device, TOTAL, &total);
  if (result == SUCCESS) result = of(device, USED, &used);
  memory[0] = total << 20;
  memory[1] = (total - used) << 20;
  memory[2] = used << 20;
  return result;
}

int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *degrees) {
  unsigned long long value = 0;
  int result = of(device, DEGREES, &value);
  (void)sensor;
  *degrees = value;
  return result;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
  unsigned long long value = 0;
  int result = of(device, MILLIWATTS, &value);
  *milliwatts = value;
  return result;
}
